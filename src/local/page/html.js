/** What every view is made with: templates that become nodes, components, hooks and signals. */

import { Component, Fragment, h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { Component, Fragment, h, render };
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact_hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect, untracked } from "./vendor/signals.js";

export const html = htm.bind(h);
