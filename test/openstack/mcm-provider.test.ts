import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { PlayedKubelets } from '../cloud/played-kubelets.ts';
import { ProviderFleet } from '../cloud/provider-fleet.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';
import { Bed } from './bed.ts';
import { belongingsOf } from './leftovers.ts';
import { BedCloud, DISK_TYPE, tagsOf } from './provider-cloud.ts';
import { secretOf } from './requests.ts';

/* The real provider for OpenStack of machine-controller-manager, served by packages/mcm-provider, over the services of OpenStack. */
const PATIENCE = { timeoutMs: 300_000, intervalMs: 1_000 };
const TEST_MS = 3_600_000;

let bed: Bed;
let cloud: BedCloud;

beforeAll(async () => {
  bed = await Bed.start();
  await bed.revive('cinder');
  await bed.admin.call('cinder', 'POST', `/v3/${bed.admin.projectID}/types`, { volume_type: { name: DISK_TYPE } });
  cloud = new BedCloud(bed);
}, 600_000);

afterAll(async () => {
  await bed[Symbol.asyncDispose]();
});

/** How many servers the project may have; -1 is any number. */
async function limitServers(instances: number): Promise<void> {
  const path = `/v2.1/os-quota-sets/${bed.user.projectID}`;
  await bed.admin.call('nova', 'PUT', path, { quota_set: { instances } });
}

async function makeServer(name: string, metadata: Readonly<Record<string, string>>): Promise<string> {
  const { server } = await bed.user.call<{ server: { id: string } }>('nova', 'POST', '/v2.1/servers', {
    server: {
      name,
      flavorRef: '1',
      imageRef: bed.seeds.imageID,
      networks: [{ uuid: bed.seeds.networkID }],
      metadata,
    },
  });
  return server.id;
}

/** Deletes a server; resolves when it is gone. */
async function deleteServer(id: string): Promise<void> {
  await bed.user.call('nova', 'DELETE', `/v2.1/servers/${id}`);
  await eventually(async () => !(await cloud.vms()).some((vm) => vm.id === id), PATIENCE);
}

/** That pods may use their addresses on all ports: what a creation does last. */
async function expectPodNetwork(count: number): Promise<void> {
  const { ports } = await belongingsOf(bed);
  const allowed = ports.flatMap(({ allowed_address_pairs: pairs }) => pairs.map(({ ip_address }) => ip_address));
  expect([ports.length, allowed]).toEqual([count, Array(count).fill('10.96.0.0/11')]);
}

test(
  'machines of the real provider for OpenStack come, roll, are replaced and go, whatever is killed, and nothing is left of them',
  async () => {
    await using site = await Site.open();
    await using fleet = await ProviderFleet.open(cloud, site);
    await using kubelets = new PlayedKubelets(site.api, async () => await fleet.machines());
    await fleet.startDriver();

    // Wrong credentials: said in the provider's words, and nothing is made.
    await fleet.apply(secretOf(bed, { password: 'not-the-password' }));
    let manager = await fleet.startManager();
    await eventually(async () => {
      const operations = (await fleet.machines()).map(({ status }) => status?.lastOperation);
      expect(operations).toEqual(
        Array(3).fill(
          expect.objectContaining({ errorCode: 'Unauthenticated', description: expect.stringContaining('OpenStack') }),
        ),
      );
    }, PATIENCE);
    expect(await cloud.leftovers()).toEqual([]);
    await fleet.putSecret(secretOf(bed));
    await fleet.settled(3, 'small');
    await expectPodNetwork(3);

    // A roll to servers that boot from volumes, in the middle of which the driver and the manager are killed.
    await fleet.roll();
    await Promise.all([fleet.driver.end('SIGKILL'), manager.end('SIGKILL')]);
    await fleet.startDriver();
    manager = await fleet.startManager();
    await fleet.settled(3, 'large');
    await expectPodNetwork(3);

    // A server is deleted by somebody else. The provider has no GetMachineStatus: only the Node tells of it.
    const [victim] = await cloud.vms();
    await deleteServer(victim?.id ?? '');
    await kubelets.lose(victim?.name ?? '');
    await eventually(
      async () => (await fleet.machines()).every(({ metadata }) => metadata.name !== victim?.name),
      PATIENCE,
    );
    await fleet.settled(3, 'large');

    // The project is full: said in the provider's words, and nothing is left of what was tried.
    await limitServers(3);
    await fleet.scale(4);
    await eventually(async () => {
      const descriptions = (await fleet.machines()).map(({ status }) => status?.lastOperation?.description ?? '');
      expect(descriptions).toContainEqual(expect.stringMatching(/quota/i));
    }, PATIENCE);
    expect(await cloud.vms()).toHaveLength(3);
    await limitServers(-1);
    await fleet.settled(4, 'large');

    // Somebody makes a server with the tags of the cluster; one of another cluster is none of our business.
    const stray = await makeServer('stray', tagsOf(fleet.namespace));
    const foreign = await makeServer('foreign', tagsOf('other'));
    await eventually(async () => {
      const ids = await fleet.ids();
      expect(ids).not.toContain(stray);
      expect(ids).toContain(foreign);
    }, PATIENCE);
    await deleteServer(foreign);
    await fleet.settled(4, 'large');

    await fleet.scale(0);
    await fleet.settled(0, 'large');
    await fleet.remove();
    await eventually(async () => expect(await cloud.leftovers()).toEqual([]), PATIENCE);
    expect(fleet.driver.log).not.toContain(bed.seeds.userPassword);
    expect(manager.output).not.toContain(bed.seeds.userPassword);
  },
  TEST_MS,
);

test(
  "a fleet of the original's machine-controller is taken over in the middle of a roll, and given back, without a server more or less",
  async () => {
    await using site = await Site.open();
    await using fleet = await ProviderFleet.open(cloud, site);
    await using _kubelets = new PlayedKubelets(site.api, async () => await fleet.machines());
    await fleet.apply(secretOf(bed));
    let original = await fleet.start('the original');
    await fleet.settled(3, 'small');
    await fleet.roll();
    await original.end('SIGKILL');
    const machinist = await fleet.start('Machinist');
    await fleet.settled(3, 'large');
    await expectPodNetwork(3);
    const rolled = await fleet.ids();

    await machinist.end('SIGTERM');
    original = await fleet.start('the original');
    await fleet.scale(2);
    await fleet.settled(2, 'large');
    expect(rolled).toEqual(expect.arrayContaining([...(await fleet.ids())]));
    await original.end('SIGTERM');
    await fleet.start('Machinist');
    await fleet.scale(0);
    await fleet.settled(0, 'large');
    await fleet.remove();
    await eventually(async () => expect(await cloud.leftovers()).toEqual([]), PATIENCE);
  },
  TEST_MS,
);
