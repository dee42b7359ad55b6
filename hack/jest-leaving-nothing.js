import { setTimeout as sleep } from 'node:timers/promises';

import PlainEnvironment from './jest-environment.js';

/** What is being closed, and what the end of a test has still to do, takes a moment, and longer on a busy machine. */
const PATIENCE_MS = 10_000;
const POLL_MS = 20;
/** Work that is about to be done, which keeps nothing alive. */
const PASSING = new Set(['Immediate', 'TickObject', 'Microtask']);

/**
 * Jest environment of a test file that fails when the file leaves something behind that keeps a process alive: a timer, a socket, a server, a
 * child. Jest itself would end the worker by force, at the end of all, and could not say whose it was.
 */
export default class LeavingNothing extends PlainEnvironment {
  #before;

  async setup() {
    await super.setup();
    // Made by whoever asks for it first, and kept for good.
    void process.stdin;
    this.#before = countsOf(process.getActiveResourcesInfo());
  }

  async teardown() {
    // Run by jest's own process the file shares that with jest.
    const left = process.send === undefined ? [] : await this.#left();
    await super.teardown();
    if (left.length > 0) {
      throw new Error(
        `the test file leaves behind what keeps a process alive: ${left.join(', ')}; see process.getActiveResourcesInfo()`,
      );
    }
  }

  async #left() {
    for (let waitedMs = 0; ; waitedMs += POLL_MS) {
      const left = [...countsOf(process.getActiveResourcesInfo())].flatMap(([kind, count]) => {
        const more = count - (this.#before.get(kind) ?? 0);
        return more > 0 && !PASSING.has(kind) ? [`${more} ${kind}`] : [];
      });
      if (left.length === 0 || waitedMs >= PATIENCE_MS) return left;
      await sleep(POLL_MS);
    }
  }
}

function countsOf(kinds) {
  const counts = new Map();
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}
