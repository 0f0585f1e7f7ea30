// Text in the language of the interface; numbers, times and sizes as that language writes them.

import { strings } from "./strings.js";

export const LANGUAGES = Object.keys(strings);
export const language = () => document.documentElement.lang;

/** The text of a key; {name} is replaced, and `key.one` is used when n is 1. */
export function t(key, values = {}) {
  const table = strings[language()] ?? strings.en;
  const single = values.n === 1 ? table[`${key}.one`] : undefined;
  const text = single ?? table[key];
  if (text === undefined) return key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return typeof value === "number" ? formatNumber(value) : value ?? whole;
  });
}

/** A note of the library in the language of the interface, if it is a known one. */
export function translateNote(note) {
  const key = Object.keys(strings.en).find((name) => name.startsWith("notes.") && strings.en[name] === note);
  return key ? t(key) : note;
}

/** Change the language, remember it, and let the views draw themselves again. */
export function setLanguage(lang) {
  document.documentElement.lang = lang;
  remember("mnemic.lang", lang);
  translateShell();
  window.dispatchEvent(new CustomEvent("mnemic:language"));
}

/** Put the texts of the language into the parts of the page that are always there. */
export function translateShell() {
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of document.querySelectorAll("[data-t-label]")) node.setAttribute("aria-label", t(node.dataset.tLabel));
  const button = document.getElementById("language");
  const other = language() === "zh" ? "en" : "zh";
  button.lang = other;
  button.textContent = strings[other]["language.name"];
}

export function formatNumber(value, digits) {
  const options = digits === undefined ? {} : { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return new Intl.NumberFormat(language(), options).format(value);
}

export function formatBytes(bytes) {
  if (!Number.isFinite(bytes)) return "";
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  let size = bytes;
  let step = 0;
  while (size >= 1000 && step < units.length - 1) {
    size /= 1000;
    step += 1;
  }
  const options = { style: "unit", unit: units[step], unitDisplay: step ? "short" : "long", maximumFractionDigits: size < 10 && step ? 1 : 0 };
  return new Intl.NumberFormat(language(), options).format(size);
}

export function formatTime(text) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text ?? "";
  return new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" }).format(time);
}

export function formatDay(text) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text ?? "";
  return new Intl.DateTimeFormat(language(), { dateStyle: "medium" }).format(time);
}

/** Read what this browser remembers; null if it remembers nothing or may not. */
export function recall(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Remember a value in this browser; null forgets it. */
export function remember(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch { /* without storage the page works, and forgets */ }
}
