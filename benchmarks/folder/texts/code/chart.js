// Draws the water level of the last days.
const DAYS_SHOWN = 14;
const REFRESH_MS = 90000; // the page is refreshed every 90 seconds

export function drawLevel(canvas, readings) {
  const context = canvas.getContext("2d");
  context.beginPath();
  for (const [index, reading] of readings.entries()) {
    context.lineTo(index * (canvas.width / DAYS_SHOWN), canvas.height - reading.level);
  }
  context.stroke();
}
