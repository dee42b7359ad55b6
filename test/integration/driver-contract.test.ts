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
