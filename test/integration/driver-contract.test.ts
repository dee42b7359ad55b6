import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { endAll } from '../../pkg/drivers/local/end-all.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { describeContract } from '../drivers/contract.ts';
import { classOf } from '../drivers/requests.ts';

describeContract({
  name: 'sim',
  machineClass: classOf('sim'),
  brokenClass: classOf('sim', { latencyMs: { create: 'soon' } }),
  brokenMember: 'providerSpec.latencyMs.create',
  userData: '#!/bin/sh',
  start: async (directory, socket) =>
    await DriverProcess.start('sim-driver', [
      `--address=unix://${socket}`,
      `--state-directory=${directory}`,
      '--create-latency=20ms',
      '--delete-latency=20ms',
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
  brokenMember: 'providerSpec.maxPods',
  userData: USER_DATA,
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
