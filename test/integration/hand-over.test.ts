import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { freePort } from '../../hack/control-plane/ports.ts';
import { ManagerProcess } from '../cloud/manager-process.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

/** On a host at a load of 25, a process takes more than a minute to start. */
const PATIENCE = { timeoutMs: 180_000, intervalMs: 50 };
/** A Lease that is not released keeps the next leader waiting for longer than this test waits. */
const FLAGS = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '10m',
  'leader-elect-renew-deadline': '9m',
};

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** Resolves with who holds both Leases, once that is one process, and not `before`. */
async function leaderAfter(pool: Pool, before: string): Promise<string> {
  return await eventually(
    async () => {
      const [one = '', other] = await pool.leaders();
      if (one === '' || one !== other || one === before)
        throw new Error(`the Leases are held by "${one}" and "${other}"`);
      return one;
    },
    { ...PATIENCE, describe: `a leader other than "${before}"` },
  );
}

/** Resolves when a process has seen who leads, and watches for the end of it. */
async function untilStandingBy(port: number): Promise<void> {
  await eventually(
    async () => {
      const readiness = await (await fetch(`http://127.0.0.1:${port}/readyz?verbose`)).text();
      expect(readiness.match(/standing by, held by/g)).toHaveLength(2);
    },
    { ...PATIENCE, describe: 'a process that stands by' },
  );
}

/** Complete lines of a log. */
function linesOf(output: string): Record<string, unknown>[] {
  const lines = output.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('a process that is told to stop hands over to the one that stands by, and nothing is missed', async () => {
  await using cloud = await SimulatedCloud.start({ site });
  await using pool = await Pool.create({ site, cloud, replicas: 1 });
  await using stack = new AsyncDisposableStack();
  const start = async (port: number): Promise<ManagerProcess> =>
    stack.use(await ManagerProcess.start({ ...pool.access, flags: { ...FLAGS, port: String(port) } }));
  const leading = await start(await freePort());
  const leader = await leaderAfter(pool, '');
  const port = await freePort();
  const other = await start(port);
  await untilStandingBy(port);

  await pool.scale(3);
  const exitCode = await leading.end('SIGTERM');
  await leaderAfter(pool, leader);
  await pool.untilUp(3);

  expect(exitCode).toBe(0);
  const [firstLine, ...more] = linesOf(other.output);
  expect(firstLine).toMatchObject({
    msg: 'started the process',
    version: expect.any(String),
    namespace: pool.namespace,
    controllers: expect.arrayContaining(['machine', 'machine-set']),
    leases: ['machine-controller-manager', 'machine-controller'],
    control: site.plane.connection.url,
    listen: `127.0.0.1:${port}`,
  });
  expect(more.filter(({ msg }) => msg === 'waiting for lease').map(({ holder }) => holder)).toEqual([leader, leader]);
  expect(cloud.created).toHaveLength(3);
  expect([...cloud.doubled]).toEqual([]);
}, 600_000);
