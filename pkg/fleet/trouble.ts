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
  return troubleSaid(reason, `${reason}: ${text}`);
}

/** The same where the line begins otherwise; messages of API servers and providers may have several. */
export function troubleSaid(reason: string, line: string): Trouble {
  return { reason, text: line.replaceAll(/\s+/g, ' '), isProgress: false };
}

/** How far something is that ends by itself. */
export function progress(reason: string, text: string): Trouble {
  return { ...trouble(reason, text), isProgress: true };
}
