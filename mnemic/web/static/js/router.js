// The address after # is the state of the page: #/ask?q=…, #/document/3?passage=7.

/** Parse the address: {view, id, values}. */
export function readRoute() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, id] = path.split("/").map(decodeURIComponent);
  return { view: view || "ask", id: id ?? "", values: new URLSearchParams(query ?? "") };
}

/** Write an address. */
export function linkTo(view, id, values = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  return `#/${view}${id === "" || id === null || id === undefined ? "" : `/${encodeURIComponent(id)}`}${query.size ? `?${query}` : ""}`;
}

/** Go to an address; without a new entry in the history if it only refines the current one. */
export function goTo(address, { replace = false } = {}) {
  if (location.hash === address) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else if (replace) history.replaceState(null, "", address);
  else location.hash = address;
}
