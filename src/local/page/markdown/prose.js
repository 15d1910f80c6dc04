/** Markdown as nodes: a table with one row for each kind of token. What is in no row is shown as the text it is. */

import { Component, html, useMemo, useRef } from "../html.js";
import { NOTHING, grown, whole } from "../core/blocks.js";
import { hostOf } from "../core/sources.js";
import { lazy } from "../views/lazy.js";
import { CodeBlock } from "./code_block.js";
import { Formula } from "./formula.js";
import { unescaped } from "./entities.js";
import { lex } from "./lexer.js";

const RemotePicture = lazy(() => import("../views/remote_picture.js").then((file) => file.RemotePicture), () => false);

/** A text of the model; `live` while it may still grow. `sources` of the turn get their numbers behind
 * their links; `cite` shows them. */
export function Prose({ text, live, sources, cite }) {
  const last = useRef(NOTHING);
  const blocks = useMemo(() => (live ? grown(last.current, text, lex) : whole(last.current, text, lex)), [text, live]);
  last.current = blocks;
  const end = blocks.tokens.length - 1;
  const notes = new Set(blocks.tokens.filter((token) => token.type === "footnote").map((token) => token.label));
  return html`<div class="prose" dir="auto">
    ${blocks.tokens.map((token, index) =>
      token.type === "space" ? null : html`<${Block} key=${index} token=${token} live=${live && index === end} sources=${sources} cite=${cite} notes=${notes} />`
    )}
  </div>`;
}

/** One block; drawn again only if it is another one. */
class Block extends Component {
  shouldComponentUpdate(next) {
    return next.token !== this.props.token || next.live !== this.props.live || next.sources !== this.props.sources;
  }

  render({ token, live, sources, cite, notes }) {
    return drawn(token, { live, sources: sources ?? [], cite, notes }, 0);
  }
}

const DEEPEST = 40;

function drawn(token, context, depth) {
  const draw = depth < DEEPEST && Object.hasOwn(DRAWN, token.type) ? DRAWN[token.type] : null;
  return draw ? draw(token, context, depth + 1) : literal(token);
}

function literal(token) {
  return token.raw ?? token.text ?? "";
}

function inside(token, context, depth) {
  return token.tokens ? token.tokens.map((one) => drawn(one, context, depth)) : unescaped(token.text ?? "");
}

/** @type {Record<string, (token: any, context: any, depth: number) => any>} */
const DRAWN = {
  space: () => null,
  def: () => null,
  hr: () => html`<hr />`,
  br: () => html`<br />`,
  text: (token, context, depth) => (token.tokens ? inside(token, context, depth) : unescaped(token.text)),
  escape: (token) => token.text,
  html: literal,
  tag: literal,
  paragraph: (token, context, depth) => html`<p dir="auto">${inside(token, context, depth)}</p>`,
  heading,
  blockquote: (token, context, depth) => html`<blockquote>${inside(token, context, depth)}</blockquote>`,
  code: (token, context) => html`<${CodeBlock} code=${token.text} language=${token.lang ?? ""} live=${context.live} />`,
  strong: (token, context, depth) => html`<strong>${inside(token, context, depth)}</strong>`,
  em: (token, context, depth) => html`<em>${inside(token, context, depth)}</em>`,
  del: (token, context, depth) => html`<del>${inside(token, context, depth)}</del>`,
  math: (token) => html`<${Formula} tex=${token.tex} raw=${token.raw} isDisplay=${token.isDisplay} />`,
  codespan: (token) => html`<code dir="ltr">${token.text}</code>`,
  list,
  checkbox: (token) => html`<span class="tick" role="img" aria-label=${token.checked ? "done" : "to do"}>${token.checked ? "☑" : "☐"}</span> `,
  footnote,
  footnote_mark: (token, context) => (context.notes.has(token.label) ? mark(token) : literal(token)),
  table,
  link,
  image,
};

/** An answer's headings stand below the turn's own (h2). */
function heading(token, context, depth) {
  return html`<${`h${Math.min(6, token.depth + 2)}`} class=${`h${token.depth}`} dir="auto">${inside(token, context, depth)}</>`;
}

function list(token, context, depth) {
  const items = token.items.map((item) => html`<li dir="auto" class=${item.task ? "task" : null}>${inside(item, context, depth)}</li>`);
  if (!token.ordered) return html`<ul>${items}</ul>`;
  return typeof token.start === "number" ? html`<ol start=${token.start}>${items}</ol>` : html`<ol>${items}</ol>`;
}

function table(token, context, depth) {
  const head = (one) => html`<th class=${one.align} dir="auto" scope="col">${inside(one, context, depth)}</th>`;
  const cell = (one) => html`<td class=${one.align} dir="auto">${inside(one, context, depth)}</td>`;
  return html`<div class="table" tabindex="0" role="group" aria-label="Table"><table>
    <thead><tr>${token.header.map(head)}</tr></thead>
    <tbody>${token.rows.map((row) => html`<tr>${row.map(cell)}</tr>`)}</tbody>
  </table></div>`;
}

/** A mark to whose note there is a text. */
function mark(token) {
  return html`<sup><button type="button" class="note-mark" data-mark=${token.label} aria-label=${`Footnote ${token.label}`} onClick=${(event) => jump(event, "note", token.label)}>${token.label}</button></sup>`;
}

function footnote(token, context, depth) {
  return html`<div class="footnote" data-note=${token.label} tabindex="-1" dir="auto"><sup>${token.label}</sup> ${inside(token, context, depth)} <button type="button" class="quiet" aria-label=${`Back to the text of footnote ${token.label}`} onClick=${(event) => jump(event, "mark", token.label)}>↩</button></div>`;
}

/** To the other end of a footnote in the same text. */
function jump(event, kind, label) {
  const node = event.currentTarget.closest(".prose").querySelector(`[data-${kind}="${CSS.escape(label)}"]`);
  node?.scrollIntoView({ block: "nearest" });
  node?.focus({ preventScroll: true });
}

/** A link that may be followed, with its host unless the text tells it; any other is shown as it was written. */
function link(token, context, depth) {
  const href = safe(token.href);
  if (!href) return literal(token);
  const host = hostOf(href);
  const source = context.sources.find((one) => one.address === href || one.address === token.href);
  const said = (token.text ?? "").includes(host);
  return html`<a href=${href} target="_blank" rel="noopener noreferrer">${inside(token, context, depth)}</a>${host && !said
      ? html`<span class="host"> (${host})</span>`
      : null}${source ? html`<sup><button type="button" aria-label=${`Source ${source.number}`} onClick=${context.cite}>${source.number}</button></sup>` : null}`;
}

function image(token) {
  const address = safe(token.href);
  const host = hostOf(address);
  if (host) return html`<${RemotePicture} key=${address} address=${address} host=${host} text=${token.text} />`;
  return html`<span class="picture"><b>${token.text || "Picture"}</b> <small>image not loaded</small></span>`;
}

function safe(address) {
  try {
    const url = new URL(unescaped(address));
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : "";
  } catch {
    return "";
  }
}
