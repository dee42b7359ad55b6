import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

import { Keys } from './keys.ts';
import { holdLines, printText, releaseLines } from './lines.ts';

const INTERRUPTED = 130;

export interface LiveViewOptions {
  /** The checkout. */
  readonly root: string;
  /** The administrator's. */
  readonly kubeconfig: string;
  /** Address of the manager's probes and metrics. */
  readonly manager: string;
  /** Printed whenever the view is closed. */
  readonly list: () => void;
  readonly signal: AbortSignal;
}

/** Shows `machinist top` on the terminal, and again whenever Enter is pressed. Resolves when a person has seen enough; rejects with the signal's reason. */
export async function showLive(options: LiveViewOptions): Promise<void> {
  using keys = new Keys(options.signal);
  for (;;) {
    holdLines();
    try {
      await runTop(options);
    } finally {
      releaseLines();
    }
    options.list();
    const answer = await keys.ask('Enter: the live view again   q and Enter: end the demo ', ['', 'q']);
    if (answer === 'q') return;
    printText('');
  }
}

/** In the demo's own group: only that reads from the terminal. */
async function runTop({ root, kubeconfig, manager, signal }: LiveViewOptions): Promise<void> {
  signal.throwIfAborted();
  const main = path.join(root, 'cmd/machinist/main.ts');
  const child = spawn(process.execPath, [main, 'top', `--kubeconfig=${kubeconfig}`, `--url=${manager}`], {
    // Through the channel it notices the end of the demo, also by SIGKILL, and leaves the terminal to the shell.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  const end = (): void => void child.kill('SIGTERM');
  signal.addEventListener('abort', end, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  signal.removeEventListener('abort', end);
  // It has taken Ctrl-C as a key; whoever presses that wants the demo to end.
  if (code === INTERRUPTED && !signal.aborted) {
    process.kill(process.pid, 'SIGINT');
    await once(signal, 'abort');
  }
  signal.throwIfAborted();
}
