/** What opens over the page, one at a time; the palette and others register theirs here. */

import { html, useLayoutEffect, useRef } from "../html.js";
import { dialog } from "../state/store.js";
import { FindDialog } from "./find_dialog.js";
import { ForgetDialog } from "./forget_dialog.js";
import { KeysDialog } from "./keys_dialog.js";
import { MoreDialog } from "./more_dialog.js";
import { Palette } from "./palette.js";
import { lazy } from "./lazy.js";
import { RenameDialog } from "./rename_dialog.js";

const AnsweringDialog = lazy(() => import("./answering_dialog.js").then((file) => file.AnsweringDialog), () => false);
const ExportDialog = lazy(() => import("./export_dialog.js").then((file) => file.ExportDialog), () => false);
const ImportDialog = lazy(() => import("./import_dialog.js").then((file) => file.ImportDialog), () => false);
const DeleteDialog = lazy(() => import("./delete_dialog.js").then((file) => file.DeleteDialog), () => false);
const DeleteManyDialog = lazy(() => import("./delete_many_dialog.js").then((file) => file.DeleteManyDialog), () => false);
const FolderDialog = lazy(() => import("./folder_dialog.js").then((file) => file.FolderDialog), () => false);
const MoveDialog = lazy(() => import("./move_dialog.js").then((file) => file.MoveDialog), () => false);
const TagsDialog = lazy(() => import("./tags_dialog.js").then((file) => file.TagsDialog), () => false);

const KINDS = {
  answering: AnsweringDialog, delete: DeleteDialog, deleteMany: DeleteManyDialog, move: MoveDialog, tags: TagsDialog, export: ExportDialog, find: FindDialog, folder: FolderDialog, forget: ForgetDialog, import: ImportDialog, keys: KeysDialog, more: MoreDialog, palette: Palette, rename: RenameDialog,
};

export function Dialogs() {
  const shown = dialog.value;
  const kind = shown?.kind;
  const close = () => {
    if (dialog.peek() === shown) dialog.value = null; // what ends late must not close the next one
  };
  const node = useRef(null);
  const Inside = Object.hasOwn(KINDS, kind) ? KINDS[kind] : null;
  useLayoutEffect(() => {
    if (!Inside) dialog.value = null;
    node.current?.showModal();
    node.current?.querySelector("[data-first]")?.focus();
  }, []);
  if (!Inside) return null;
  return html`<dialog ref=${node} class=${`dialog ${kind}`} aria-labelledby="dialog-title" onClose=${close} onMouseDown=${(event) => event.target === node.current && close()}>
    <${Inside} ...${shown} close=${close} />
  </dialog>`;
}
