import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import packageJson from '../../package.json' with { type: 'json' };
import { toMicroTimestamp } from '../../pkg/base/clock/clock.ts';
import { type Ending, Program } from '../e2e/program.ts';
import { connect, namespace, type TestNamespace } from '../env/environment.ts';

const READY = '[+] clusters ok: control: reachable\n[+] work ok\nreadyz check passed\n';
const METRICS = `machinist_build_info{version="${packageJson.version}"} 1\nmachinist_driver_up{provider="sim"} 1\n`;

/** What the manager answers on /readyz; it is in a pod whose address is that of this host. */
let readyz = { code: 200, text: READY };
const manager = createServer(({ url = '' }, response) => {
  response.statusCode = url.startsWith('/readyz') ? readyz.code : 200;
  response.end(url.startsWith('/readyz') ? readyz.text : METRICS);
});
let port: number;
let ns: TestNamespace;

/** The API server passes nothing on to the loopback interface. */
const address = Object.values(networkInterfaces())
  .flatMap((one) => one ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

beforeAll(async () => {
  await new Promise<void>((resolve) => manager.listen(0, resolve));
  ({ port } = manager.address() as AddressInfo); // a TCP server
  ns = await namespace();
  const api = connect().api();
  const pods = `/api/v1/namespaces/${ns.name}/pods`;
  const container = { name: 'machinist', image: 'x', ports: [{ name: 'http', containerPort: port }] };
  const metadata = { name: 'manager-1', labels: { app: 'machinist' } };
  const spec = { containers: [container], automountServiceAccountToken: false };
  await api.send('POST', pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  await api.send('PATCH', `${pods}/manager-1/status`, { status: { phase: 'Running', podIP: address } });
  for (const name of ['machine-controller-manager', 'machine-controller']) {
    const now = toMicroTimestamp(Date.now());
    const lease = { holderIdentity: 'manager-1_x', acquireTime: now, renewTime: now, leaseDurationSeconds: 3_600 };
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec: lease };
    await api.send('POST', `/apis/coordination.k8s.io/v1/namespaces/${ns.name}/leases`, body);
  }
  await api.close();
});
afterAll(async () => {
  await ns[Symbol.asyncDispose]();
  await new Promise((resolve) => manager.close(resolve));
});

const status = (...args: string[]): Promise<Ending> =>
  Program.run('machinist', ['status', `--kubeconfig=${connect().kubeconfig}`, '-n', ns.name, ...args]);

describe('machinist status', () => {
  test('asks the pods of the manager through the API server', async () => {
    readyz = { code: 200, text: READY };
    const well = await status();
    readyz = { code: 503, text: '[-] work failed: held since T, WHY\nreadyz check failed\n' };
    const ill = await status('-o', 'json');

    expect(well).toMatchObject({ code: 0, stderr: '' });
    expect(well.stdout).toMatch(
      /^OK +cluster +Kubernetes v1\..*\nOK +leaders +machine-controller-manager: manager-1_x has led for/,
    );
    expect(well.stdout).toContain('manager-1: ready\n');
    expect(well.stdout).toContain('sim: connected\n');
    expect(well.stdout).toMatch(/\n\d+ passed, 0 warnings, 0 failed\n$/);
    expect(ill.code).toBe(1);
    expect(JSON.parse(ill.stdout)).toMatchObject({
      failed: 2,
      findings: expect.arrayContaining([
        expect.objectContaining({ check: 'processes', status: 'fail', detail: 'manager-1: not ready' }),
        expect.objectContaining({ check: 'work', status: 'fail', detail: 'manager-1: work: held since T, WHY' }),
      ]),
    });
  });

  test('asks a process at its URL', async () => {
    readyz = { code: 200, text: READY };

    const [there, nowhere] = [
      await status('--url', `http://127.0.0.1:${port}/`),
      await status('--url', 'http://127.0.0.1:9'),
    ];

    expect(there.code).toBe(0);
    expect(there.stdout).toContain(`http://127.0.0.1:${port}: ready\n`);
    expect(nowhere).toMatchObject({ code: 1, stdout: expect.stringContaining('http://127.0.0.1:9: no answer: ') });
  });

  test('says what may not be read, and checks the rest', async () => {
    const kubeconfig = await connect().kubeconfigFor({ user: 'nobody-in-particular' });
    const { code, stdout, stderr } = await Program.run('machinist', [
      'status',
      `--kubeconfig=${kubeconfig}`,
      '-n',
      ns.name,
    ]);

    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toMatch(/^OK +cluster +Kubernetes v1\./);
    for (const check of ['leaders', 'processes', 'machines']) {
      expect(stdout).toMatch(
        new RegExp(`\nWARN +${check} +cannot be read: .* is forbidden: User "nobody-in-particular"`),
      );
    }
  });

  test('finds a manager in another namespace than that of its Machines', async () => {
    await using machines = await namespace();
    readyz = { code: 200, text: READY };
    const access = [`--kubeconfig=${connect().kubeconfig}`, '-n', machines.name];
    const { code, stdout } = await Program.run('machinist', ['status', ...access, '--manager-namespace', ns.name]);

    expect(code).toBe(0);
    expect(stdout).toContain('machine-controller: manager-1_x has led for');
    expect(stdout).toContain('manager-1: ready\n');
    expect(stdout).toContain('there are none in this namespace');
  });

  test('says where nothing is found what to check', async () => {
    const { code, stdout } = await status('-l', 'app=other');

    expect(code).toBe(1);
    expect(stdout).toContain('no pod of a manager found');
    expect((await status('--context', 'no')).stderr).toMatch(/^error: .*context "no" does not exist\n$/);
  });
});
