import type { Pod } from '../../apis/wire.ts';
import type { Drain, PodRule } from '../../drain/drain.ts';
import type { Target } from '../../kube/targets/targets.ts';

export interface DrainedMachine {
  /** Only rules of its namespace are for it. */
  readonly namespace: string | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly clusterLabels: Readonly<Record<string, string>> | undefined;
}

/** Rules of users about the pods of Nodes that are drained. */
export interface PodRules {
  /** What a drain does about each pod. What it throws ends a drain that is not forced. */
  of(machine: DrainedMachine, target: Pick<Target, 'reader'>, signal: AbortSignal): Promise<(pod: Pod) => PodRule>;
  /** Adds a listener for changes, until the function that it returns is called. */
  onChange(listener: () => void): () => void;
}

/** Drains as another one does, anew whenever rules change that it obeys. */
export function obeying(drain: Drain, rules: Pick<PodRules, 'onChange'>): Drain {
  return async (request, signal, report) => {
    if (request.rules === undefined || request.force) return await drain(request, signal, report);
    for (;;) {
      const change = new AbortController();
      const unsubscribe = rules.onChange(() => change.abort(new Error('the rules for pods have changed')));
      try {
        return await drain(request, AbortSignal.any([signal, change.signal]), report);
      } catch (err) {
        if (signal.aborted || !change.signal.aborted) throw err;
      } finally {
        unsubscribe();
      }
    }
  };
}
