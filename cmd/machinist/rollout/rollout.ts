import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { toTimestamp } from '../../../pkg/clock/clock.ts';
import { keepAliveDuring } from '../../../pkg/clock/keep-alive.ts';
import { version } from '../version.ts';
import { RolloutCluster } from './cluster.ts';
import { failureText, RolloutError } from './error.ts';
import { historyTable, revisionDetails, revisionsOf, undoOf } from './history.ts';
import { rolloutStatus, type RolloutStatus } from './status.ts';
import { nameOf, quoted, shown } from './target.ts';

/** What every subcommand takes. */
export interface CommonOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
}

/** Where a subcommand writes a line to. */
type Say = (line: string) => void;

/** What a command has of its process. */
export interface Terminal {
  readonly out: Say;
  readonly err: Say;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** One subcommand at work on the MachineDeployment `name`. */
export type Task = (cluster: RolloutCluster, name: string, say: Say) => Promise<void>;

/** The key that kubectl writes too: any change of the template is a rollout. */
const RESTARTED_AT_ANNOTATION = 'kubectl.kubernetes.io/restartedAt';

/** Runs one subcommand. Resolves with the exit code: 0, or 1 when something went wrong, which was then said in one line. */
export async function runRollout(
  words: readonly string[],
  { kubeconfig, namespace }: CommonOptions,
  task: Task,
  { out, err: complain, env }: Terminal,
): Promise<number> {
  try {
    const name = nameOf(words);
    await keepAliveDuring(async () => {
      await using cluster = await RolloutCluster.open({ kubeconfig, namespace, env, version: version() });
      await task(cluster, name, out);
    });
    return 0;
  } catch (err) {
    const text = failureText(err);
    if (text === undefined) throw err;
    complain(text);
    return 1;
  }
}

/** Says where the rollout stands, and with `watch` every change until it is finished. `timeoutMs` 0 waits forever. */
export function status(options: { watch: boolean; timeoutMs: number; revision: number }): Task {
  return async (cluster, name, say) => {
    let said: RolloutStatus | undefined;
    const look = (deployment: MachineDeployment): boolean => {
      const now = rolloutStatus(deployment, options.revision);
      const { text, isDone, trouble } = now;
      if (text !== said?.text) say(text);
      if (trouble !== undefined && trouble !== said?.trouble) say(trouble);
      said = now;
      return isDone || !options.watch;
    };
    const expiry = new AbortController();
    const late = new RolloutError('timed out waiting for the condition');
    const timer = options.timeoutMs === 0 ? undefined : setTimeout(() => expiry.abort(late), options.timeoutMs);
    try {
      await cluster.follow(name, look, expiry.signal);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Lists the revisions, or with a number the template of one. */
export function history(revision: number): Task {
  return async (cluster, name, say) => {
    const revisions = revisionsOf(await cluster.get(name), await cluster.sets());
    say(revision === 0 ? historyTable(name, revisions) : revisionDetails(name, revisions, revision));
  };
}

/** Asks for an earlier revision; 0 is the one before. The controller does the rest. */
export function undo(toRevision: number): Task {
  return async (cluster, name, say) => {
    const isChanged = await cluster.change(name, async (deployment) => {
      const to = undoOf(deployment, revisionsOf(deployment, await cluster.sets()), toRevision);
      return to.kind === 'skip' ? undefined : { spec: { rollbackTo: { revision: to.revision } } };
    });
    const skipped = `skipped rollback (current template already matches revision ${toRevision})`;
    say(`${shown(name)} ${isChanged ? 'rolled back' : skipped}`);
  };
}

/** Stops a rollout where it is; scaling goes on. */
export const pause: Task = async (cluster, name, say) => {
  await cluster.change(name, async ({ spec }) => {
    if (spec.paused === true) throw new RolloutError(`${quoted(name)} is already paused`);
    return await Promise.resolve({ spec: { paused: true } });
  });
  say(`${shown(name)} paused`);
};

/** Lets a paused rollout go on. */
export const resume: Task = async (cluster, name, say) => {
  await cluster.change(name, async ({ spec }) => {
    if (spec.paused !== true) throw new RolloutError(`${quoted(name)} is not paused`);
    return await Promise.resolve({ spec: { paused: false } });
  });
  say(`${shown(name)} resumed`);
};

/** Replaces every Machine, as the strategy allows, although nothing of the template has changed but a time. */
export const restart: Task = async (cluster, name, say) => {
  const restartedAt = toTimestamp(cluster.now());
  await cluster.change(name, async ({ spec }) => {
    if (spec.paused === true) {
      throw new RolloutError("can't restart paused machine deployment (run rollout resume first)");
    }
    const annotations = spec.template.metadata?.annotations;
    if (annotations?.[RESTARTED_AT_ANNOTATION] === restartedAt) {
      throw new RolloutError(
        'if restart has already been triggered within the past second, please wait before attempting to trigger another',
      );
    }
    const template = { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: restartedAt } } };
    return await Promise.resolve({ spec: { template } });
  });
  say(`${shown(name)} restarted`);
};
