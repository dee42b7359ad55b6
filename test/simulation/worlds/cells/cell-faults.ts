import type { FaultRule } from '../../../../packages/providers/sim/faults.ts';
import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION } from '../../../../pkg/apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../../../pkg/base/clock/clock.ts';
import { HOUR } from '../../../durations.ts';
import { beUnready } from '../../world/acts.ts';
import { type MachinesWorld, POOL } from '../../world/machines-world.ts';
import type { RequestFault } from '../../world/network.ts';
import { FINE, type FaultRates } from '../../world/weather.ts';
import { type Cell, settingNamed } from './cell.ts';

/** Makes something wrong with a cell; what it returns ends that. */
export type CellFault = (cell: Cell, others: readonly Cell[]) => () => void;

const AWAY_MS = 240_000;
const EVENTS = 1_000;
const ANSWERS_AFTER_MS = 4_000;

/** The driver goes wrong. */
export function driverFault(rules: readonly FaultRule[]): CellFault {
  return ({ world: { simulation } }) => {
    simulation.faults.set(rules);
    return () => simulation.faults.set([]);
  };
}

/** The way to the target cluster is bad. */
function weather(rates: Partial<FaultRates>): CellFault {
  return ({ world }) => {
    world.weather.rates = { ...FINE, ...rates };
    return () => {
      world.weather.rates = FINE;
    };
  };
}

/** What users of the cell do wrong, and set right afterwards. */
function mistake(make: (cell: Cell, others: readonly Cell[]) => void): CellFault {
  return (cell, others) => {
    make(cell, others);
    return () => cell.setRight();
  };
}

/** What is wrong with the target cluster of a cell, with its Secret, or with its namespace. */
export const CELL_FAULTS: Readonly<Record<string, CellFault>> = {
  'the target cluster is unreachable': ({ world }) => {
    world.weather.isDown = true;
    return () => {
      world.weather.isDown = false;
    };
  },
  'the target cluster rejects some requests': weather({ refused403: 0.3 }),
  'the target cluster rejects all requests': weather({ refused403: 1 }),
  'the target cluster has too many requests': weather({ refused429: 1 }),
  'the target cluster fails': weather({ refused500: 1 }),
  'the target cluster fails often, and loses requests and responses': weather({
    refused500: 0.3,
    requestLost: 0.3,
    answerLost: 0.3,
  }),
  'the target cluster is slow': weather({ slow: 1 }),
  'watches of the target cluster break, and it has forgotten where they were': weather({
    watchCut: 1,
    watchForgotten: 1,
  }),
  'watches of the target cluster stall': weather({ watchSilent: 1 }),
  'watches of the target cluster are late': weather({ watchLagMs: 60_000 }),
  'the kubeconfig is missing': mistake((cell) => cell.setKubeconfig('')),
  'the kubeconfig is unusable': mistake((cell) => cell.setKubeconfig('clusters: []')),
  'the kubeconfig names the target cluster of another namespace': mistake((cell, [other]) =>
    cell.lead(other?.namespace ?? ''),
  ),
  'a setting is invalid': mistake((cell) => cell.annotate({ [settingNamed('machine-drain-timeout')]: 'soon' })),
  'the label is removed': mistake((cell) => cell.select(false)),
};

/** The same as the disturbances of rows of the fault table, by their names; those that are missing are of the process. */
export const DISTURBANCES: Readonly<Record<string, CellFault>> = {
  'a VM gets a twin of its name and UID while it is made, so that drivers say OutOfRange': ({ world: { cloud } }) => {
    const has = new Set<string>();
    cloud.onEvent((vm, event) => {
      if (event !== 'created' || has.size === 2 || has.has(vm.machineName)) return;
      has.add(vm.machineName);
      cloud.create({ ...vm, joinsAtMs: undefined });
    });
    return () => undefined;
  },
  'a driver was upgraded and names every VM by another id': driverFault([
    { method: 'ListMachines', effect: 'other-id' },
    { method: 'GetMachineStatus', effect: 'other-id' },
  ]),
  "creations are answered with another machine's VM": driverFault([
    { method: 'CreateMachine', effect: 'other', times: 6 },
  ]),
  'every machine gets a second VM behind our back': ({ world }) => {
    const { cloud, time } = world;
    const annotations = { [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: toTimestamp(time.epochMs + HOUR) };
    world.act('PATCH', world.pathOf('machineclasses', POOL), { metadata: { annotations } });
    for (const vm of cloud.all()) {
      cloud.create({ ...vm, machineName: `${vm.machineName}-2`, machineUID: undefined, joinsAtMs: undefined });
    }
    return () => undefined;
  },
  'all Nodes of the zone are away at once': ({ world }) => silence(world, 1),
  'half of the Nodes are away': ({ world }) => silence(world, 0.5),
  'a webhook fails for everything that is written': refuseWrites,
  'the MachineClass vanishes': ({ world }) => takeAway(world, world.pathOf('machineclasses')),
  'the Secret vanishes': ({ world, namespace }) => takeAway(world, `/api/v1/namespaces/${namespace}/secrets`),
  'ten thousand Events a minute are written': writeEvents,
  'the API server answers in four seconds': ({ world }) => {
    const latencyMs = world.weather.latencyMs.bind(world.weather);
    world.weather.latencyMs = () => ANSWERS_AFTER_MS / 2;
    return () => {
      world.weather.latencyMs = latencyMs;
    };
  },
  'the driver stands still': driverFault([{ method: '*', effect: 'hang' }]),
};

/** Nodes fall silent for a while. */
function silence(world: MachinesWorld, share: number): () => void {
  const names = world.nodes.map(({ metadata }) => metadata.name).toSorted();
  beUnready(world, names.slice(0, Math.ceil(names.length * share)), 'unknown', AWAY_MS);
  return () => undefined;
}

/** What is written about Machines of the namespace fails. */
function refuseWrites({ namespace, world: { options } }: Cell): () => void {
  const ofControl = options.cell?.of.weather;
  if (ofControl === undefined) throw new Error(`${namespace} is no cell`);
  const faultOf = ofControl.faultOf.bind(ofControl);
  const written = new RegExp(`/namespaces/${namespace}/machine(s|sets)(/|$|\\?)`);
  ofControl.faultOf = (request): RequestFault =>
    request.method !== 'GET' && written.test(request.path) ? 'refused-500' : faultOf(request);
  return () => {
    ofControl.faultOf = faultOf;
  };
}

/** Takes an object of the pool away, whatever holds it. */
function takeAway(world: MachinesWorld, collection: string): () => void {
  const path = `${collection}/${POOL}`;
  const answer = world.servers.control.handle({ method: 'GET', path });
  if (!('body' in answer) || typeof answer.body === 'string') throw new Error(`there is no ${path}`);
  const { metadata: _metadata, ...rest } = answer.body as Record<string, unknown>;
  world.act('DELETE', path, {});
  const { code } = world.servers.control.handle({ method: 'GET', path });
  if (code === 200) world.act('PATCH', path, { metadata: { finalizers: null } });
  return () => void world.act('POST', collection, { ...rest, metadata: { name: POOL, namespace: world.namespace } });
}

/** Events about a Machine, by somebody else. */
function writeEvents({ world, namespace }: Cell): () => void {
  const [machine] = world.machines;
  const involvedObject = { kind: 'Machine', namespace, name: machine?.metadata.name };
  for (let i = 0; i < EVENTS; i++) {
    const body = { metadata: { name: `flood-${i}` }, involvedObject, type: 'Warning', reason: 'Flood' };
    world.servers.control.handle({ method: 'POST', path: `/api/v1/namespaces/${namespace}/events`, body });
  }
  return () => undefined;
}
