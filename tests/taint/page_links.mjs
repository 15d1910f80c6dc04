/** Reads texts, each with the links that others found in it; says which lead out, by the page's renderer and by them. */

import { readFileSync } from "node:fs";
import { lex } from "../../src/local/page/markdown/lexer.js";
import { unescaped } from "../../src/local/page/markdown/entities.js";

const HERE = "https://here.invalid/dir/page";

function links(value, found = []) {
  if (Array.isArray(value)) value.forEach((one) => links(one, found));
  else if (value && typeof value === "object") {
    if ((value.type === "link" || value.type === "image") && value.href !== undefined) found.push(unescaped(value.href));
    for (const [key, one] of Object.entries(value)) if (key !== "links") links(one, found);
  }
  return found;
}

function leadsOut(href) {
  try {
    const url = new URL(href, HERE);
    return !["https://here.invalid", "http://here.invalid"].includes(url.origin);
  } catch {
    return false;
  }
}

const texts = JSON.parse(readFileSync(0, "utf8"));
const found = texts.map(({ text, others }) => [...links(lex(text)).map((href) => ["page", href]), ...others].filter(([, href]) => leadsOut(href)));
process.stdout.write(JSON.stringify(found));
