/** What keeps a MachineDeployment or a MachineSet from being as requested. */
export interface Trouble {
  /** In one word. */
  readonly reason: string;
  /** In one line, with the reason. */
  readonly text: string;
  /** Whether it ends by itself: a rollout, or anything else that brings the machines to the desired number. */
  readonly isProgress: boolean;
}

/** What does not end by itself; `text` is what follows the reason in its line. */
export function trouble(reason: string, text: string): Trouble {
  return { reason, text: inOneLine(`${reason}: ${text}`), isProgress: false };
}

/** How far something is that ends by itself. */
export function progress(reason: string, text: string): Trouble {
  return { ...trouble(reason, text), isProgress: true };
}

/** Messages of API servers and providers may have several. */
export function inOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
