import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { toTimestamp } from '../../../pkg/base/clock/clock.ts';
import { machineDeployments, machines, machineSets } from '../../../pkg/kube/client/resource.ts';
import { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import type { ClusterOptions, SelectionOptions } from '../options.ts';
import { noticesOf, runForExitCode, type PrintLine, type Terminal } from '../terminal.ts';
import { rolloutBar } from './bar.ts';
import { historyTable, revisionDetails, revisionDiff, revisionsOf, undoOf } from './history.ts';
import { rolloutStatus, type RolloutStatus } from './status.ts';
import { describeBlockingDeletions, ownedBy } from './blocking-deletions.ts';
import { deploymentNamesOf, quoted, shown } from './target.ts';

/** What every subcommand takes. */
export type RolloutOptions = ClusterOptions & Pick<SelectionOptions, 'selector'>;

/** One subcommand at work on the MachineDeployment `name`. */
export type Task = (cluster: CommandCluster, name: string, terminal: Terminal) => Promise<void>;

/** How often the Machines are looked at. */
const HELD_UP_EVERY_MS = 5_000;
/** The key that kubectl writes too: any change of the template is a rollout. */
const RESTARTED_AT_ANNOTATION = 'kubectl.kubernetes.io/restartedAt';

/** Runs one subcommand for one MachineDeployment after the other. Resolves with the exit code. */
export async function runRollout(
  words: readonly string[],
  options: RolloutOptions,
  task: Task,
  terminal: Terminal,
): Promise<number> {
  return await runForExitCode(terminal, async () => {
    const named = deploymentNamesOf(words, options.selector);
    await using cluster = await CommandCluster.open({
      ...options,
      env: terminal.env,
      err: noticesOf(terminal),
      command: 'rollout',
    });
    const found =
      named ?? (await cluster.list(machineDeployments, options.selector)).map(({ metadata }) => metadata.name);
    if (found.length === 0) throw new CommandError(`no resources found in ${cluster.namespace} namespace`);
    for (const name of found) await task(cluster, name, terminal);
  });
}

/**
 * Says where the rollout stands, and with `watch` every change until it is finished, also which deletions hold it up. `timeoutMs` 0 waits
 * forever.
 */
export function status(options: { watch: boolean; timeoutMs: number; revision: number }): Task {
  return async (cluster, name, { out: say, columns, pin }) => {
    let said: RolloutStatus | undefined;
    let latest: MachineDeployment | undefined;
    const look = (deployment: MachineDeployment): boolean => {
      const now = rolloutStatus(deployment, options.revision);
      const { text, isDone, trouble } = now;
      if (text !== said?.text) say(text);
      if (trouble !== undefined && trouble !== said?.trouble) say(trouble);
      said = now;
      if (columns !== undefined) pin?.(isDone || !options.watch ? '' : rolloutBar(deployment, columns - 1));
      latest = isDone ? undefined : deployment;
      return isDone || !options.watch;
    };
    const holds = new HoldUps(cluster, say);
    const timer = options.watch ? setInterval(() => void holds.look(latest), HELD_UP_EVERY_MS) : undefined;
    try {
      await cluster.follow(machineDeployments, name, look, options.timeoutMs);
      if (!options.watch) await holds.look(latest);
    } finally {
      clearInterval(timer);
      holds.end();
      pin?.('');
    }
  };
}

/** Says which deletions hold a rollout up, each time that something else is to be said. */
class HoldUps {
  readonly #cluster: CommandCluster;
  readonly #say: PrintLine;
  #said: readonly string[] = [];
  #isLooking = false;
  #isOver = false;

  constructor(cluster: CommandCluster, say: PrintLine) {
    this.#cluster = cluster;
    this.#say = say;
  }

  /** Nothing is said any more. */
  end(): void {
    this.#isOver = true;
  }

  /** Never rejects: an outage ends, or the command does. */
  async look(deployment: MachineDeployment | undefined): Promise<void> {
    if (deployment === undefined || this.#isLooking) return;
    this.#isLooking = true;
    try {
      const selector = selectorOf(deployment);
      const [sets, found] = await Promise.all([
        this.#cluster.list(machineSets, selector),
        this.#cluster.list(machines, selector),
      ]);
      const lines = describeBlockingDeletions(ownedBy(deployment, sets, found), this.#cluster.now());
      if (this.#isOver) return;
      for (const line of lines) if (!this.#said.includes(line)) this.#say(line);
      this.#said = lines;
    } catch {
      // The next look tries again.
    } finally {
      this.#isLooking = false;
    }
  }
}

/** Labels that all of its MachineSets and Machines have; others may have them, too. */
function selectorOf({ spec }: MachineDeployment): string {
  return Object.entries(spec.selector?.matchLabels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

/** Lists the revisions, or with a number the template of one; with `isDiff` how one differs from that before it. */
export function history(revision: number, isDiff = false): Task {
  return async (cluster, name, { out: say }) => {
    const revisions = revisionsOf(await cluster.get(machineDeployments, name), await cluster.list(machineSets));
    if (isDiff) say(revisionDiff(name, revisions, revision));
    else
      say(revision === 0 ? historyTable(name, revisions, cluster.now()) : revisionDetails(name, revisions, revision));
  };
}

/** Asks for an earlier revision; 0 is the one before. The controller does the rest. */
export function undo(toRevision: number): Task {
  return async (cluster, name, { out: say }) => {
    const isChanged = await cluster.change(machineDeployments, name, async (deployment) => {
      const to = undoOf(deployment, revisionsOf(deployment, await cluster.list(machineSets)), toRevision);
      return to.kind === 'skip' ? undefined : { spec: { rollbackTo: { revision: to.revision } } };
    });
    const skipped = `skipped rollback (current template already matches revision ${toRevision})`;
    say(`${shown(name)} ${isChanged ? 'rolled back' : skipped}`);
  };
}

/** Stops a rollout where it is; scaling goes on. */
export const pause: Task = async (cluster, name, { out: say }) => {
  await cluster.change(machineDeployments, name, async ({ spec }) => {
    if (spec.paused === true) throw new CommandError(`${quoted(name)} is already paused`);
    return await Promise.resolve({ spec: { paused: true } });
  });
  say(`${shown(name)} paused`);
};

/** Lets a paused rollout go on. */
export const resume: Task = async (cluster, name, { out: say }) => {
  await cluster.change(machineDeployments, name, async ({ spec }) => {
    if (spec.paused !== true) throw new CommandError(`${quoted(name)} is not paused`);
    return await Promise.resolve({ spec: { paused: false } });
  });
  say(`${shown(name)} resumed`);
};

/** Replaces every Machine, as the strategy allows, although nothing of the template has changed but a time. */
export const restart: Task = async (cluster, name, { out: say }) => {
  const restartedAt = toTimestamp(cluster.now());
  await cluster.change(machineDeployments, name, async ({ spec }) => {
    if (spec.paused === true) {
      throw new CommandError("can't restart paused machine deployment (run rollout resume first)");
    }
    const annotations = spec.template.metadata?.annotations;
    if (annotations?.[RESTARTED_AT_ANNOTATION] === restartedAt) {
      throw new CommandError(
        'if restart has already been triggered within the past second, please wait before attempting to trigger another',
      );
    }
    const template = { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: restartedAt } } };
    return await Promise.resolve({ spec: { template } });
  });
  say(`${shown(name)} restarted`);
};
