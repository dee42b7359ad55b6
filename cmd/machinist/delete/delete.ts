import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../pkg/apis/meta.ts';
import type { DeletionPolicy } from '../../../pkg/controllers/machine-facts/deletion-policy.ts';
import { machines } from '../../../pkg/kube/client/resource.ts';
import { CommandCluster } from '../command-cluster.ts';
import { MACHINE, objectName } from '../kinds.ts';
import type { ClusterOptions } from '../options.ts';
import { parseReferences, requireNames } from '../references.ts';
import { noticesOf, runForExitCode, type PrintLine, type Terminal } from '../terminal.ts';
import { DELETED_KINDS } from './command.ts';
import {
  annotationsFor,
  type DeletionGoal,
  remainingPolicy,
  deletionProgressOf,
  deletionTimeoutText,
} from './progress.ts';

export interface DeleteCommandOptions extends ClusterOptions {
  readonly policy?: DeletionPolicy;
  readonly prepare?: boolean;
  readonly abort?: boolean;
  readonly wait: boolean;
  /** 0 waits forever. */
  readonly timeout: number;
}

const SAID: Readonly<Record<DeletionGoal, string>> = {
  gone: 'deletion requested',
  prepared: 'deletion being prepared',
  kept: 'deletion aborted',
};

/** Deletes Machines, prepares that, or aborts what is prepared, and waits for all of them at a time. Resolves with the exit code. */
export async function deleteMachines(
  words: readonly string[],
  options: DeleteCommandOptions,
  terminal: Terminal,
): Promise<number> {
  return await runForExitCode(terminal, async () => {
    const { env, out } = terminal;
    const { policy, prepare, abort, wait, timeout } = options;
    const goal: DeletionGoal = abort === true ? 'kept' : prepare === true ? 'prepared' : 'gone';
    const named = requireNames(parseReferences(words, DELETED_KINDS), DELETED_KINDS);
    await using cluster = await CommandCluster.open({ ...options, env, err: noticesOf(terminal), command: 'delete' });
    const asked: Machine[] = [];
    for (const { name } of named) {
      const machine = await ask(cluster, name, goal, policy);
      asked.push(machine);
      out(`${objectName(MACHINE, name)} ${SAID[goal]}`);
      const left = goal === 'kept' ? remainingPolicy(machine) : undefined;
      if (left !== undefined) out(left);
    }
    if (wait) await Promise.all(asked.map((machine) => show(cluster, machine, goal, timeout, out)));
  });
}

/** Asks for it; resolves with the Machine that is meant. */
async function ask(
  cluster: CommandCluster,
  name: string,
  goal: DeletionGoal,
  policy: DeletionPolicy | undefined,
): Promise<Machine> {
  let machine = await cluster.get(machines, name);
  await cluster.change(machines, name, (now) => {
    machine = now;
    const annotations = annotationsFor(now, goal, policy);
    return annotations && { metadata: { annotations } };
  });
  if (goal === 'gone' && !isBeingDeleted(machine)) await cluster.remove(machines, machine);
  return machine;
}

/** Says every change until the goal is reached. */
async function show(
  cluster: CommandCluster,
  asked: Machine,
  goal: DeletionGoal,
  timeoutMs: number,
  say: PrintLine,
): Promise<void> {
  const { name, uid } = asked.metadata;
  let said: string | undefined;
  let last = asked;
  const look = (machine: Machine | undefined): boolean => {
    const { text, isDone } = deletionProgressOf(name, machine, goal, cluster.now());
    if (text !== said) say(text);
    said = text;
    last = machine ?? last;
    return isDone;
  };
  const late = (): string => deletionTimeoutText(last, goal);
  await cluster.follow(machines, name, look, timeoutMs, { uid, check: () => look(undefined) }, late);
}
