import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterAll, expect, test } from '@jest/globals';

import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { kwokProviderID } from '../../packages/providers/kwok/node.ts';
import {
  KWOK_CLASS_ANNOTATION,
  KWOK_CLUSTER_ANNOTATION,
  KWOK_NAMESPACE_LABEL,
} from '../../packages/providers/kwok/tags.ts';
import { endAll } from '../../packages/providers/local/end-all.ts';
import { ControlClient } from '../cloud/control-client.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { describeContract } from '../drivers/contract.ts';
import { callOf, classOf } from '../drivers/requests.ts';
import { connect } from '../env/environment.ts';
import { Program } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';

const CONTROL = join(mkdtempSync(join(tmpdir(), 'control-')), 'socket');

afterAll(() => {
  rmSync(dirname(CONTROL), { recursive: true });
});

describeContract({
  name: 'sim',
  machineClass: classOf('sim'),
  brokenClass: classOf('sim', { latencyMs: { create: 'soon' } }),
  userData: '#!/bin/sh',
  notApplicable: ['bad-secret'],
  makeUntagged: async (machine) => {
    await using control = new ControlClient(CONTROL);
    const { name: machineName, className } = machine;
    await control.plant({ machineName, className, namespace: '' });
  },
  start: async (directory, socket) =>
    await DriverProcess.start('sim-driver', [
      `--address=unix://${socket}`,
      `--state-directory=${directory}`,
      '--create-latency=20ms',
      '--delete-latency=20ms',
      '--status-latency=0s',
      '--list-latency=0s',
      `--control=unix://${CONTROL}`,
    ]),
  cleanUp: async () => undefined,
});

const { path: kubeletBinary } = await resolveProgram('kubemark');

// No API server listens there: a kubelet that cannot join is a machine all the same.
const USER_DATA = `apiVersion: v1
kind: Config
clusters: [{ name: nowhere, cluster: { server: "https://127.0.0.1:9" } }]
users: [{ name: bootstrap, user: { token: "abcdef.0123456789abcdef" } }]
contexts: [{ name: bootstrap, context: { cluster: nowhere, user: bootstrap } }]
current-context: bootstrap
`;

describeContract({
  name: 'local',
  machineClass: classOf('local'),
  brokenClass: classOf('local', { maxPods: 'many' }),
  userData: USER_DATA,
  notApplicable: ['foreign-volume', 'untagged-vm', 'bad-secret', 'untagged-vm-by-a-foreign-id'],
  start: async (directory, socket) =>
    await DriverProcess.start('local-driver', [
      `--address=unix://${socket}`,
      `--state-directory=${directory}`,
      `--kubelet-binary=${kubeletBinary}`,
    ]),
  cleanUp: async (directory) => {
    await endAll(directory);
  },
});

const cluster = connect();

/** Of kwok itself there is nothing to see here: a Node that nobody makes ready is a machine all the same. */
describeContract({
  name: 'kwok',
  machineClass: classOf('kwok'),
  brokenClass: classOf('kwok', { capacity: { cpu: 'many' } }),
  userData: '#!/bin/sh',
  notApplicable: ['foreign-volume', 'bad-secret'],
  makeUntagged: async ({ name, namespace, className }) => {
    const api = cluster.api();
    const labels = { [KWOK_NAMESPACE_LABEL]: namespace };
    const metadata = { name, labels, annotations: { [KWOK_CLASS_ANNOTATION]: className } };
    await api.send('POST', '/api/v1/nodes', { metadata, spec: { providerID: kwokProviderID(name, 'by-hand') } });
    await api.close();
  },
  start: async (directory, socket) =>
    await DriverProcess.start('kwok-driver', [
      `--address=unix://${socket}`,
      `--state-directory=${directory}`,
      `--kubeconfig=${cluster.kubeconfig}`,
    ]),
  cleanUp: async () => {
    const api = cluster.api();
    const { items } = await api.send<{ items: Node[] }>('GET', `/api/v1/nodes?labelSelector=${KWOK_NAMESPACE_LABEL}`);
    const left = items.filter(({ metadata }) => metadata.annotations?.[KWOK_CLUSTER_ANNOTATION] === callOf().cluster);
    await Promise.all(left.map(({ metadata: { name } }) => api.send('DELETE', `/api/v1/nodes/${name}`)));
    await api.close();
  },
});

test('an interrupted verification removes what it has made, and says that it was interrupted', async () => {
  const place = mkdtempSync(join(tmpdir(), 'interrupted-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(place, { recursive: true }));
  const [socket, control] = [join(place, 's'), join(place, 'c')];
  const [classFile, secretFile] = [join(place, 'class.yaml'), join(place, 'secret.yaml')];
  writeFileSync(classFile, JSON.stringify(classOf('sim')));
  writeFileSync(secretFile, 'kind: Secret\nstringData: { userData: x }\n');
  await using _driver = await DriverProcess.start('sim-driver', [
    `--address=unix://${socket}`,
    `--control=unix://${control}`,
    '--delete-latency=1h',
  ]);
  await using cloud = new ControlClient(control);
  const args = ['driver', 'verify', `--address=unix://${socket}`, `--class=${classFile}`, `--secret=${secretFile}`];
  await using verification = new Program('machinist', [...args, '--rule=deletion-repeated']);
  // It is in the middle of its rule for as long as the deletion that it has asked for takes; the one that tidies up takes no time.
  await eventually(async () => ((await cloud.calls())['DeleteMachine'] ?? 0) > 0);
  expect(await cloud.vms()).toHaveLength(1);
  await cloud.set({ latencyMs: { delete: 0 } });

  verification.kill('SIGINT');

  const { code, stdout } = await verification.ended();
  expect({ code, said: stdout.trim().split('\n').at(-1) }).toEqual({
    code: 1,
    said: '0 passed, 0 failed, 0 not applicable, interrupted',
  });
  expect(await cloud.vms()).toEqual([]);
});
