import { setTimeout as sleep } from 'node:timers/promises';

import type { Component } from '../../hack/control-plane/component.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { messageOf } from '../../hack/control-plane/errno.ts';
import { type KeepRunningOptions, PAUSE_MS, tailOf } from './keep-running.ts';

/**
 * Starts each program of a control plane again, with its port and data, whenever it ends by itself. Returns what ends that; to
 * be called before the control plane is stopped.
 */
export function keepControlPlane(
  { etcd, apiserver, controllerManager }: ControlPlane,
  options: Pick<KeepRunningOptions, 'mostRestarts' | 'print' | 'giveUp'>,
): () => Promise<void> {
  const stop = new AbortController();
  const running = new Set<Promise<void>>();
  for (const component of [etcd, apiserver, controllerManager]) {
    if (component === undefined) continue;
    const startAgain = starterOf(component, options, stop.signal);
    component.onUnexpectedEnd(() => {
      const start = startAgain().finally(() => running.delete(start));
      running.add(start);
    });
  }
  return async () => {
    stop.abort();
    await Promise.allSettled(running);
  };
}

/** What starts it until it serves, or it was tried too often. */
function starterOf(
  component: Component,
  { mostRestarts, print, giveUp }: Pick<KeepRunningOptions, 'mostRestarts' | 'print' | 'giveUp'>,
  signal: AbortSignal,
): () => Promise<void> {
  const { name, logFile } = component;
  let restarts = 0;
  return async () => {
    while (!signal.aborted) {
      if (restarts === mostRestarts) {
        const often = restarts === 0 ? '' : ` after ${restarts} restarts`;
        return giveUp(
          `${name} ended${often}; the demo cannot continue without it. Its log ends with:\n${tailOf(logFile)}`,
        );
      }
      restarts += 1;
      print(`restarting ${name} (restart ${restarts} of at most ${mostRestarts})`);
      try {
        await sleep(PAUSE_MS, undefined, { signal });
        await component.start(signal);
        return print(`${name} is serving again`);
      } catch (err) {
        if (!signal.aborted) print(messageOf(err));
      }
    }
  };
}
