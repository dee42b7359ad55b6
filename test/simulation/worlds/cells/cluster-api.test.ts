import { expect, jest, test } from '@jest/globals';

import { sampledSeeds } from '../../../expect/sampled.ts';
import { kubeconfigOf } from '../../world/simulated-process.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { integerIn, oneOf, seededRandom } from '../../world/seeded-random.ts';
import { targetURL } from '../../world/target-address.ts';
import { CLUSTER_API, ClusterMachines, furnishCluster, furnishProvider } from '../cluster-api/cluster-api-world.ts';
import { CLUSTER, CLUSTER_API_KINDS } from '../cluster-api/kinds.ts';
import { Cell } from './cell.ts';
import { withCells } from './cells-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const MINUTE_MS = 60_000;
const NAMES = ['cell-1', 'cell-2', 'cell-3'];
const SHARDS = 3;
const CONTROLLERS = 'machine-deployment,machine-set,machine,machine-class,secret,cluster-api';
const LEASES = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '60s',
  'leader-elect-renew-deadline': '45s',
  'leader-elect-retry-period': '10s',
};
const STEPS = 40;

/** The Secret of the Cluster leads to the target cluster of a cell; of the first cell there is none: its Nodes are in its target all the same. */
function lead({ world, namespace }: Cell, target: string): void {
  if (namespace === NAMES[0]) return;
  const kubeconfig = kubeconfigOf(targetURL({ target, asker: namespace, name: 'api' }), 'token');
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  const name = `${CLUSTER}-kubeconfig`;
  const data = { value: Buffer.from(kubeconfig).toString('base64') };
  const isThere = world.servers.control.handle({ method: 'GET', path: `${path}/${name}` }).code === 200;
  if (isThere) world.act('PATCH', `${path}/${name}`, { data });
  else world.act('POST', path, { metadata: { name }, data });
}

test.each(sampledSeeds('Machines of Cluster API in cells', [1, 2, 3]))(
  'Machines of Cluster API in cells, with the same names in each, are looked after while replicas die, labels go and kubeconfigs are mixed up (seed %i)',
  async (seed) => {
    const random = seededRandom(seed, 'Cluster API in cells');
    const plan = { names: NAMES, shards: SHARDS, managers: 2 };
    const flags = { ...LEASES, controllers: CONTROLLERS };
    await using world = await MachinesWorld.create({
      ...withCells({ seed, flags }, plan),
      kinds: CLUSTER_API_KINDS,
    });
    const { time, processes } = world;
    furnishProvider(world);
    const cells: Cell[] = [];
    for (const name of NAMES) {
      const cell = await Cell.create(world, name, SHARDS, { replicas: 0 });
      cells.push(cell);
      cell.setRight();
      furnishCluster(cell.world);
      lead(cell, name);
    }
    while (processes.lacksOne) await processes.start();
    const populations = cells.map((cell) => new ClusterMachines(cell.world, integerIn(random, 1, 3)));
    const findings = (): readonly string[] => populations.flatMap(({ ledger }) => ledger.findings);
    const until = async (isSo: () => boolean): Promise<void> => {
      for (let i = 0; i < 240 && !isSo(); i++) await time.advance(MINUTE_MS / 2);
    };

    for (let step = 0; step < STEPS; step++) {
      const at = integerIn(random, 0, cells.length - 1);
      const draw = random();
      if (draw < 0.1) oneOf(random, processes.running).kill();
      else if (draw < 0.2) cells[at]?.select(random() < 0.5);
      else if (draw < 0.3 && cells[at] !== undefined) lead(cells[at], oneOf(random, NAMES));
      else populations[at]?.act(CLUSTER_API.acts, random);
      while (processes.lacksOne) await processes.start();
      await time.advance(integerIn(random, 5, 90) * 1_000);
    }
    for (const cell of cells) {
      cell.setRight();
      lead(cell, cell.namespace);
    }
    for (const one of populations) one.calm();
    await until(() => populations.every((one) => one.isAsAsked() && one.untruths().length === 0));
    expect(populations.filter((one) => !one.isAsAsked()).map((one) => one.shown())).toEqual([]);
    expect(populations.flatMap((one) => one.untruths())).toEqual([]);
    for (const one of populations) one.end();
    await until(() => populations.every((one) => one.left().length === 0));

    expect(populations.flatMap((one) => one.left())).toEqual([]);
    expect(findings()).toEqual([]);
  },
);
