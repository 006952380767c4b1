/**
 * What the script of an isolated surface may use: `lineup.surface`, there before the script runs.
 *
 * The script runs in a frame of its own: no network, no storage, no other window. All it has is the state of its surface (one JSON
 * object, shared with the App's process) and two ways to speak: a patch changes the state, an event is a message to the App.
 * Use it in an editor: `/// <reference path="lineup-surface.d.ts" />`.
 */
declare const lineup: { readonly surface: LineupSurface };

type LineupJson = null | boolean | number | string | LineupJson[] | { [name: string]: LineupJson };
type LineupState = { [name: string]: LineupJson };

interface LineupStateInfo {
  /** Version of the state at the kernel that this one stands on. */
  readonly version: number;
  /** What changed, as a merge patch; null = take the whole state anew. */
  readonly patch: LineupState | null;
  /** True when this frame made the change itself. */
  readonly isOwn: boolean;
}

interface LineupLook {
  readonly theme: "light" | "dark";
  readonly lang: "en" | "zh";
}

/** What `patch` and `event` reject with. */
interface LineupRefused extends Error {
  /** A stable code: limit_exceeded, app_instance_not_found, lost ... */
  readonly code: string;
  readonly detail?: { readonly [name: string]: LineupJson };
}

interface LineupSurface {
  /** Be told the state: at once if it is there, then after every change. Objects are shared between calls: never change them. */
  onState(listener: (state: LineupState, info: LineupStateInfo) => void): void;
  /**
   * Change the state by a JSON Merge Patch (RFC 7396: null deletes, arrays are replaced whole), at most 48 KiB. Shown at once; resolves
   * with the version once the kernel has it. A change the App made meanwhile stays: patches are applied one after the other.
   * Refused (limit_exceeded ...): taken back, the promise rejects.
   */
  patch(patch: LineupState): Promise<number>;
  /** Tell the App of a deliberate act, such as submit; at most 48 KiB. Resolves once it lies in the App's inbox. */
  event(name: string, body?: LineupState): Promise<void>;
  /**
   * Be told theme and language, at once and whenever they change. `color-scheme`, `lang` and `data-theme` of the document follow by
   * themselves.
   */
  onLook(listener: (look: LineupLook) => void): void;
  /**
   * Be told that this document is about to be replaced by a new one (the kernel was away and is back): what is begun and not yet a patch,
   * such as a line under the pen, is lost unless it is said now. What is said here still counts; there is no time to wait for an answer.
   */
  onLeave(listener: () => void): void;
  readonly theme: "light" | "dark";
  readonly lang: "en" | "zh";
  /**
   * Of the words of several languages, those of the person's: `const WORDS = { en: { title: "Tasks" }, zh: { title: "任务" } }`, then
   * `surface.inLanguage(WORDS).title` where something is drawn, and drawn again in `onLook`. A language that is not given is English.
   * Every language has the members of the English words, in the same types.
   */
  inLanguage<Words>(words: { readonly en: Words; readonly zh?: NoInfer<Words> }): Words;
}
