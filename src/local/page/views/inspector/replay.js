/** A moment of an answer, gone to by hand, message by message, or played: what was going on then. */

import { html, useEffect, useState } from "../../html.js";
import { atMoment, besides } from "../../core/waterfall.js";
import { duration } from "../../core/words.js";

const SPEEDS = [0.1, 1, 10];

/** `after` is in seconds since the beginning, null before anybody has gone anywhere. @param {{fall: any, envelopes: any[],
 * after: number | null, move: (after: number, isWanted: boolean) => void}} given */
export function Replay({ fall, envelopes, after, move }) {
  const [isPlaying, play] = useState(false);
  const [speed, choose] = useState(1);
  const length = fall.whole.to - fall.whole.from;
  const at = after ?? 0;
  useEffect(() => {
    if (!isPlaying) return undefined;
    let [before, shown, frame] = [performance.now(), at >= length ? 0 : at, 0];
    const step = (now) => {
      shown = Math.min(length, shown + ((now - before) / 1000) * speed);
      before = now;
      move(shown, false);
      if (shown >= length) play(false);
      else frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [isPlaying, speed, length]);
  const go = (to) => (play(false), move(to, true));
  const { previous, next, message } = besides(envelopes, fall.whole.from, at);
  const running = atMoment(fall, at);
  return html`<div class="replay" role="group" aria-label="Moment">
    <div class="replay-row"><button type="button" class="quiet" aria-label="Previous message" disabled=${previous === null} onClick=${() => go(previous)}>‹</button>
      <button type="button" class="quiet" onClick=${() => play(!isPlaying)}>${isPlaying ? "Pause" : "Play"}</button>
      <button type="button" class="quiet" aria-label="Next message" disabled=${next === null} onClick=${() => go(next)}>›</button>
      <input type="range" aria-label="Moment" min="0" max=${length} step=${length / 500} value=${at} aria-valuetext=${`after ${duration(at) || "0"}`} onInput=${(event) => go(Number(event.target.value))} />
      <select aria-label="Speed" onChange=${(event) => choose(Number(event.target.value))}>${SPEEDS.map((one) => html`<option key=${one} value=${one} selected=${one === speed}>${one}×</option>`)}</select></div>
    ${after === null ? null : html`<p class="quiet-words" data-moment><span class="num">+${at.toFixed(3)} s</span> ${running.length ? running.join(", ") : "nothing runs"}${message ? html` · <code>${message.subject}</code> from ${message.sender}` : null}</p>`}
  </div>`;
}
