// The map of the stations.
export const CENTER: [number, number] = [53.0586, 8.7321];
export const START_ZOOM = 11;

export interface Station {
  name: string;
  level: number;
}

export function colorOf(station: Station, alarm: number): string {
  return station.level > alarm ? "#c4161c" : "#2f7d4f";
}
