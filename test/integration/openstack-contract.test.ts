import { afterAll } from '@jest/globals';

import { DriverProcess } from '../drivers/driver-process.ts';
import { describeContract } from '../drivers/contract.ts';
import { classOf } from '../drivers/requests.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { FakeOpenStack } from '../fakes/fake-openstack.ts';
import { OpenStackServer } from '../fakes/openstack-server.ts';

const TAGS = { 'kubernetes.io-cluster-x': '1', 'kubernetes.io-role-worker': '1' };
const SPEC = { imageID: 'i-1', region: 'region', flavorID: 'f-1', tags: TAGS, networkID: 'n-1' };

const cloud = new FakeOpenStack(new FakeClock());
const server = await OpenStackServer.start(cloud);

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** The contract on a cloud that costs nothing; test/openstack shows a sample of its rules to real services. */
describeContract({
  name: 'openstack',
  machineClass: classOf('openstack', { spec: SPEC }),
  brokenClass: classOf('openstack', { spec: { ...SPEC, rootDiskSize: 'big' } }),
  userData: '#cloud-config',
  secret: server.secret,
  brokenSecret: { ...server.secret, password: 'not-the-password' },
  // What DriverServer does for each of our drivers alike.
  leftOut: [
    'old-token',
    'old-token-of-a-creation',
    'highest-token-is-told',
    'tokens-of-another-cluster',
    'no-leader-election',
    'restart-keeps-tokens',
  ],
  notApplicable: [],
  makeUntagged: async ({ name }) => {
    const body = { server: { name, metadata: TAGS, networks: [] } };
    await Promise.resolve(cloud.serve({ service: 'compute', method: 'POST', path: '/servers', body }));
  },
  start: async (directory, socket) =>
    await DriverProcess.start('openstack-driver', [
      `--address=unix://${socket}`,
      `--state-directory=${directory}`,
      // A creation that is broken off is begun again after that.
      '--answer-timeout=4s',
    ]),
  cleanUp: async () => undefined,
});
