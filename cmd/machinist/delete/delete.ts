import { GROUP } from '../../../pkg/apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../pkg/apis/meta.ts';
import type { DeletionPolicy } from '../../../pkg/controllers/machines/deletion-policy.ts';
import { machines } from '../../../pkg/kube/resource.ts';
import { CommandCluster } from '../command-cluster.ts';
import { runForExitCode, type PrintLine, type Terminal } from '../terminal.ts';
import { version } from '../version.ts';
import {
  annotationsFor,
  type DeletionGoal,
  remainingPolicy,
  deletionProgressOf,
  deletionTimeoutText,
} from './progress.ts';

export interface DeleteCommandOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
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

/** Deletes a Machine, prepares that, or aborts what is prepared. Resolves with the exit code. */
export async function runDelete(name: string, options: DeleteCommandOptions, terminal: Terminal): Promise<number> {
  return await runForExitCode(terminal, async () => {
    const { env, out } = terminal;
    const { kubeconfig, namespace, policy, prepare, abort, wait, timeout } = options;
    const goal: DeletionGoal = abort === true ? 'kept' : prepare === true ? 'prepared' : 'gone';
    const userAgent = `machinist/${version()} delete`;
    await using cluster = await CommandCluster.open({ kubeconfig, namespace, env, userAgent });
    const machine = await ask(cluster, name, goal, policy);
    out(`machine.${GROUP}/${name} ${SAID[goal]}`);
    const left = goal === 'kept' ? remainingPolicy(machine) : undefined;
    if (left !== undefined) out(left);
    if (wait) await show(cluster, machine, goal, timeout, out);
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
