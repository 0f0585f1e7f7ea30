// Names of documents: the file, and the folder it is in.

const NEAR = 3; // folders that are shown; the others become …

/** The last part of a document's name and its folder; the name of a note is not a path. */
export function splitName(item) {
  const name = item.name || item.title || "";
  if (item.source === "note" || item.kind === "note") return { base: name, folder: "" };
  const parts = name.split("/").filter(Boolean);
  const folders = parts.slice(0, -1);
  return { base: parts.at(-1) ?? name, folder: `${folders.length > NEAR ? "… / " : ""}${folders.slice(-NEAR).join(" / ")}` };
}

/** The title, where it says more than the name. */
export const titleOf = (item) => (item.title && !splitName(item).base.startsWith(item.title) ? item.title : "");
