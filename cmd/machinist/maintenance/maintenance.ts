import { GROUP } from '../../../pkg/apis/machine/v1alpha1/group.ts';
import { NODE_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import { isNotFound } from '../../../pkg/kube/errors.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { machines } from '../../../pkg/kube/resource.ts';
import { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import { runForExitCode, type PrintLine, type Terminal } from '../terminal.ts';
import { version } from '../version.ts';
import {
  endMaintenancePatch,
  type MaintenanceGoal,
  maintenanceState,
  startOf,
  maintenanceTimeoutText,
} from './state.ts';

/** What every subcommand takes. */
export interface MaintenanceOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly wait: boolean;
  /** 0 waits forever. */
  readonly timeout: number;
}

/** Runs one subcommand for a Machine, or for the Machine of a Node. Resolves with the exit code. */
export async function runMaintenance(
  goal: MaintenanceGoal,
  target: string,
  { kubeconfig, namespace, wait, timeout }: MaintenanceOptions,
  terminal: Terminal,
): Promise<number> {
  return await runForExitCode(terminal, async () => {
    const { env, out } = terminal;
    const userAgent = `machinist/${version()} maintenance`;
    await using cluster = await CommandCluster.open({ kubeconfig, namespace, env, userAgent });
    const name = await machineNamed(cluster, target);
    if (goal !== 'status') await ask(cluster, name, goal, out);
    if (goal === 'status' || wait) await show(cluster, name, goal, { isWaiting: wait, timeoutMs: timeout }, out);
  });
}

/** What may stand before a name, as for kubectl: of Machines, else of Nodes. */
const TARGET = /^(?:(?:(?<machine>machines?|mc)|(?<node>nodes?|no))\/)?(?<name>[^/]+)$/;

/** The Machine of that name, else the one whose Node has it. Throws CommandError. */
async function machineNamed(cluster: CommandCluster, target: string): Promise<string> {
  const { machine, node, name } = TARGET.exec(target)?.groups ?? {};
  if (name === undefined) throw new CommandError('expected one machine, as NAME, mc/NAME or node/NAME');
  if (node === undefined) {
    try {
      return (await cluster.get(machines, name)).metadata.name;
    } catch (err) {
      if (machine !== undefined || !isNotFound(err)) throw err;
    }
  }
  const found = await cluster.list(machines, `${NODE_LABEL}=${name}`);
  const [first, ...others] = found.map(({ metadata }) => metadata.name);
  if (first === undefined)
    throw new CommandError(`no machine "${name}" found, and no machine whose Node has that name`);
  if (others.length === 0) return first;
  throw new CommandError(`several machines have Node "${name}": ${[first, ...others].join(', ')}`);
}

async function ask(cluster: CommandCluster, name: string, goal: 'start' | 'end', say: PrintLine): Promise<void> {
  const isChanged = await cluster.change(machines, name, (machine) => {
    const annotations = goal === 'start' ? startOf(machine) : endMaintenancePatch(machine);
    return annotations && { metadata: { annotations } };
  });
  const done = goal === 'start' ? 'maintenance requested' : 'maintenance no longer requested';
  const before = goal === 'start' ? 'maintenance already requested' : 'maintenance is not requested';
  say(`machine.${GROUP}/${name} ${isChanged ? done : before}`);
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
