import { isNotFound } from '../../../pkg/kube/client/errors.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { machines } from '../../../pkg/kube/client/resource.ts';
import { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import { isNameOf, type KindName, MACHINE, NODE, objectName } from '../kinds.ts';
import { machinesOfNode } from '../machines-of-node.ts';
import type { ClusterOptions } from '../options.ts';
import { parseReferences, requireNames } from '../references.ts';
import { noticesOf, runForExitCode, type PrintLine, type Terminal } from '../terminal.ts';
import { MAINTAINED_KINDS } from './command.ts';
import {
  endMaintenancePatch,
  type MaintenanceGoal,
  maintenanceState,
  nodeMayAsk,
  startOf,
  maintenanceTimeoutText,
} from './state.ts';

/** What every subcommand takes. */
export interface MaintenanceOptions extends ClusterOptions {
  readonly wait: boolean;
  /** 0 waits forever. */
  readonly timeout: number;
}

/** Runs one subcommand for Machines, or for the Machines of Nodes, and waits for all of them at a time. Resolves with the exit code. */
export async function runMaintenance(
  goal: MaintenanceGoal,
  words: readonly string[],
  options: MaintenanceOptions,
  terminal: Terminal,
): Promise<number> {
  return await runForExitCode(terminal, async () => {
    const { env, out } = terminal;
    const { wait, timeout } = options;
    const named = requireNames(parseReferences(words, MAINTAINED_KINDS, { mayOmitType: true }), MAINTAINED_KINDS);
    // Without a type, the name may be a Node's.
    const isTyped =
      words.some((word) => word.includes('/')) || MAINTAINED_KINDS.some((kind) => isNameOf(kind, words[0] ?? ''));
    await using cluster = await CommandCluster.open({
      ...options,
      env,
      err: noticesOf(terminal),
      command: 'maintenance',
    });
    const names: string[] = [];
    for (const { kind, name } of named) names.push(await machineNamed(cluster, name, isTyped ? kind : undefined));
    if (goal !== 'status') for (const name of names) await ask(cluster, name, goal, out);
    if (goal !== 'status' && !wait) return;
    await Promise.all(names.map((name) => show(cluster, name, goal, { isWaiting: wait, timeoutMs: timeout }, out)));
  });
}

/** The Machine of that name, else the one whose Node has it, unless only one of these is meant. Throws CommandError. */
async function machineNamed(cluster: CommandCluster, name: string, kind: KindName | undefined): Promise<string> {
  if (kind !== NODE) {
    try {
      return (await cluster.get(machines, name)).metadata.name;
    } catch (err) {
      if (kind === MACHINE || !isNotFound(err)) throw err;
    }
  }
  const [first, ...others] = await machinesOfNode(cluster, name);
  if (first === undefined)
    throw new CommandError(`no machine "${name}" found, and no machine whose Node has that name`);
  if (others.length === 0) return first;
  throw new CommandError(`several machines have Node "${name}": ${[first, ...others].join(', ')}`);
}

async function ask(cluster: CommandCluster, name: string, goal: 'start' | 'end', say: PrintLine): Promise<void> {
  let onNode = '';
  const isChanged = await cluster.change(machines, name, (machine) => {
    const annotations = goal === 'start' ? startOf(machine) : endMaintenancePatch(machine);
    onNode = nodeMayAsk(machine);
    return annotations && { metadata: { annotations } };
  });
  const done = goal === 'start' ? 'maintenance requested' : `maintenance no longer requested on the Machine${onNode}`;
  const before = goal === 'start' ? 'maintenance already requested' : 'maintenance is not requested';
  say(`${objectName(MACHINE, name)} ${isChanged ? done : before}`);
}

/** Says where it stands, and when waiting every change until it is there. */
async function show(
  cluster: CommandCluster,
  name: string,
  goal: MaintenanceGoal,
  { isWaiting, timeoutMs }: { isWaiting: boolean; timeoutMs: number },
  say: PrintLine,
): Promise<void> {
  let said: string | undefined;
  let last: Machine | undefined;
  const look = (machine: Machine): boolean => {
    const { text, isDone } = maintenanceState(machine, goal);
    if (text !== said) say(text);
    said = text;
    last = machine;
    return isDone || !isWaiting;
  };
  const late = (): string => (last === undefined ? `machine "${name}"` : maintenanceTimeoutText(last, goal));
  await cluster.follow(machines, name, look, timeoutMs, undefined, late);
}
