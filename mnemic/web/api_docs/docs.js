// The API's documentation, made of its schema; each operation can be tried.
"use strict";

const METHODS = ["get", "post", "put", "delete"];
const MAX_SHOWN = 20000; // characters of a response

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

function resolve(schema, root) {
  while (schema && schema.$ref) schema = schema.$ref.slice(2).split("/").reduce((at, key) => at[key], root);
  if (schema && schema.anyOf) return resolve(schema.anyOf.find((kind) => kind.type !== "null"), root);
  return schema || {};
}

function example(schema, root, depth = 0) {
  if (schema.default !== undefined) return schema.default;
  const kind = resolve(schema, root);
  if (kind.default !== undefined) return kind.default;
  if (kind.enum) return kind.enum[0];
  if (kind.type === "object" || kind.properties) {
    if (depth > 3) return {};
    return Object.fromEntries(
      Object.entries(kind.properties || {}).map(([key, value]) => [key, example(value, root, depth + 1)]));
  }
  if (kind.type === "array") return kind.items ? [example(kind.items, root, depth + 1)] : [];
  if (kind.type === "integer" || kind.type === "number") return kind.minimum ?? 0;
  if (kind.type === "boolean") return false;
  return "";
}

function describeType(schema, root) {
  const kind = resolve(schema, root);
  return kind.enum ? kind.enum.join(" | ") : kind.type || "any";
}

async function send(event, path, method, fields, body, output) {
  event.preventDefault();
  const query = new URLSearchParams();
  let address = path;
  for (const { parameter, input } of fields) {
    if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (parameter.in === "query" && input.value !== "") query.set(parameter.name, input.value);
  }
  if ([...query].length) address += `?${query}`;
  const options = { method: method.toUpperCase(), headers: { "X-Mnemic": "1" }, credentials: "same-origin" };
  if (body && body.type === "file") {
    options.body = new FormData();
    for (const file of body.files) options.body.append("files", file, file.webkitRelativePath || file.name);
  } else if (body) {
    options.headers["Content-Type"] = "application/json";
    options.body = body.value;
  }
  output.textContent = "…";
  try {
    const response = await fetch(address, options);
    const kind = response.headers.get("content-type") || "";
    const isText = /json|text|event-stream/.test(kind);
    let text = isText ? await response.text() : `${(await response.blob()).size} bytes of ${kind || "nothing"}`;
    if (kind.includes("json")) text = JSON.stringify(JSON.parse(text), null, 1);
    output.textContent = `${options.method} ${address}\n${response.status} ${response.statusText}\n\n`
      + text.slice(0, MAX_SHOWN) + (text.length > MAX_SHOWN ? "\n…" : "");
  } catch (error) {
    output.textContent = `The server did not answer: ${error.message}`;
  }
}

function showOperation(path, method, operation, root) {
  const fields = (operation.parameters || []).map((parameter) => ({
    parameter, input: element("input", { type: "text", value: parameter.schema?.default ?? "", required: parameter.required }),
  }));
  const content = operation.requestBody?.content || {};
  let body = null;
  if (content["application/json"]) {
    body = element("textarea", { spellcheck: "false" });
    body.value = JSON.stringify(example(content["application/json"].schema, root), null, 1);
  } else if (content["multipart/form-data"]) body = element("input", { type: "file", multiple: true });
  const output = element("pre", { hidden: true, tabindex: "0" });
  const form = element("form", {
    onsubmit: (event) => { output.hidden = false; send(event, path, method, fields, body, output); },
  });
  for (const { parameter, input } of fields) {
    const about = [describeType(parameter.schema, root), parameter.description].filter(Boolean).join(": ");
    form.append(element("label", {}, element("code", {}, parameter.name), " ", element("small", {}, about), input));
  }
  if (body) form.append(element("label", {}, "Body", body));
  form.append(element("button", {}, "Send"));
  const rows = Object.entries(operation.responses).map(([status, response]) => element("tr", {},
    element("th", { scope: "row" }, status), element("td", {}, response.description),
    element("td", {}, Object.keys(response.content || {}).join(", "))));
  return element("details", { "data-text": `${method} ${path} ${operation.summary} ${operation.description || ""}`.toLowerCase() },
    element("summary", {}, element("code", {}, `${method.toUpperCase()} ${path}`)),
    element("div", {}, element("p", {}, operation.description || operation.summary), form, output,
      element("table", {}, element("tbody", {}, ...rows))));
}

async function start() {
  const main = document.getElementById("operations");
  const response = await fetch("/v1/openapi.json", { credentials: "same-origin" });
  if (!response.ok) {
    main.textContent = (await response.json()).detail;
    return;
  }
  const root = await response.json();
  document.getElementById("about").textContent = root.info.description;
  const groups = new Map();
  for (const [path, methods] of Object.entries(root.paths)) {
    for (const method of METHODS.filter((name) => methods[name])) {
      const tag = (methods[method].tags || ["other"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(showOperation(path, method, methods[method], root));
    }
  }
  main.replaceChildren(...[...groups].map(([tag, operations]) =>
    element("section", {}, element("h2", {}, tag), ...operations)));
  document.getElementById("find").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const node of main.querySelectorAll("details")) {
      node.hidden = !words.every((word) => node.dataset.text.includes(word));
    }
  });
}

start();
