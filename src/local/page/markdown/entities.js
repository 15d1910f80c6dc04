/** The names of characters that people and models do write; others stay as they stand. */

const NAMED = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", deg: "°",
  hellip: "…", ndash: "–", mdash: "—", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»",
  bull: "•", middot: "·", times: "×", divide: "÷", plusmn: "±", minus: "−", le: "≤", ge: "≥", ne: "≠", asymp: "≈",
  rarr: "→", larr: "←", uarr: "↑", darr: "↓", harr: "↔", euro: "€", pound: "£", yen: "¥", cent: "¢", sect: "§",
  para: "¶", auml: "ä", ouml: "ö", uuml: "ü", Auml: "Ä", Ouml: "Ö", Uuml: "Ü", szlig: "ß", eacute: "é", egrave: "è",
  agrave: "à", ccedil: "ç", ntilde: "ñ", alpha: "α", beta: "β", gamma: "γ", delta: "δ", pi: "π", mu: "μ",
  sigma: "σ", omega: "ω", Omega: "Ω", Delta: "Δ", Sigma: "Σ", infin: "∞", sum: "∑", radic: "√", frac12: "½",
};

/** "a &lt; b" → "a < b". @param {string} text */
export function unescaped(text) {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z0-9]{2,8}));/g, (whole, decimal, hex, name) => {
    if (name) return Object.hasOwn(NAMED, name) ? NAMED[name] : whole;
    const code = decimal ? parseInt(decimal, 10) : parseInt(hex, 16);
    return code === 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? "\ufffd" : String.fromCodePoint(code);
  });
}
