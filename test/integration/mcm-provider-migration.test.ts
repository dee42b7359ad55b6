import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import type { Node } from '../../pkg/apis/wire.ts';
import { AwsCloud, KEYS } from '../cloud/aws-cloud.ts';
import { PlayedKubelets } from '../cloud/played-kubelets.ts';
import { ProviderFleet, type Side } from '../cloud/provider-fleet.ts';
import { Site } from '../cloud/site.ts';
import { Workload } from '../cloud/workload.ts';
import { eventually } from '../expect/eventually.ts';

/* Programs of the original and Machinist, with the same real provider, that take a fleet over from each other while something happens. */
const PATIENCE = { timeoutMs: 300_000, intervalMs: 500 };
const TEST_MS = 1_800_000;
const DIRECTIONS: readonly (readonly [Side, Side])[] = [
  ['the original', 'Machinist'],
  ['Machinist', 'the original'],
];

let cloud: AwsCloud;

beforeEach(async () => {
  cloud = await AwsCloud.start();
});

afterEach(async () => {
  await cloud[Symbol.asyncDispose]();
});

/** Whether the network interfaces of all instances are as the class says it: they forward packets of pods. */
async function areInitialized(): Promise<boolean> {
  const text = await cloud.ec2.call('DescribeNetworkInterfaces');
  return text.includes('<sourceDestCheck>') && !/<sourceDestCheck>true/i.test(text);
}

async function removed(fleet: ProviderFleet<AwsCloud>): Promise<void> {
  await fleet.remove();
  expect(await cloud.ec2.leftovers()).toEqual([]);
}

test(
  "a fleet of the original's machine-controller is taken over in the middle of a roll, and given back, without a VM more or less",
  async () => {
    await using fleet = await ProviderFleet.open(cloud);
    await fleet.apply(KEYS);
    let original = await fleet.start('the original');
    await fleet.settled(3, 'small');

    await original.end('SIGTERM');
    const before = await fleet.ids();
    let machinist = await fleet.start('Machinist');
    await fleet.settled(3, 'small');
    expect(await fleet.ids()).toEqual(before);
    await machinist.end('SIGTERM');

    original = await fleet.start('the original');
    await fleet.roll();
    await original.end('SIGTERM');
    machinist = await fleet.start('Machinist');
    await fleet.settled(3, 'large');
    const rolled = await fleet.ids();

    await machinist.end('SIGTERM');
    original = await fleet.start('the original');
    await fleet.scale(4);
    await fleet.settled(4, 'large');
    expect(await fleet.ids()).toEqual(expect.arrayContaining([...rolled]));
    await fleet.scale(2);
    await original.end('SIGTERM');
    await fleet.start('Machinist');
    await fleet.settled(2, 'large');

    await removed(fleet);
  },
  TEST_MS,
);

describe.each(DIRECTIONS)('when %s is killed and %s takes over', (first, second) => {
  test(
    'instances that were created and not recorded become those of their machines',
    async () => {
      await using fleet = await ProviderFleet.open(cloud);
      await fleet.apply(KEYS);
      cloud.gate.hold('RunInstances', 'after');
      const running = await fleet.start(first);
      await cloud.gate.holds(3);
      await running.end('SIGKILL');
      cloud.gate.open();
      const made = await fleet.ids();
      expect(made).toHaveLength(3);
      expect((await fleet.machines()).filter(({ spec }) => spec.providerID !== undefined)).toEqual([]);

      await fleet.start(second);

      await fleet.settled(3, 'small');
      expect(await fleet.ids()).toEqual(made);
      expect(await areInitialized()).toBe(true);
      await removed(fleet);
    },
    TEST_MS,
  );

  test(
    'instances that wait for their initialization are initialized',
    async () => {
      await using fleet = await ProviderFleet.open(cloud);
      await fleet.apply(KEYS);
      cloud.gate.hold('ModifyNetworkInterfaceAttribute', 'before');
      const running = await fleet.start(first);
      await cloud.gate.holds(3);
      await running.end('SIGKILL');
      cloud.gate.open();
      const made = await fleet.ids();
      expect(made).toHaveLength(3);
      expect(await areInitialized()).toBe(false);

      await fleet.start(second);

      await fleet.settled(3, 'small');
      expect(await fleet.ids()).toEqual(made);
      expect(await areInitialized()).toBe(true);
      await removed(fleet);
    },
    TEST_MS,
  );

  test(
    'a machine whose instance was terminated without an answer goes, and no other one',
    async () => {
      await using fleet = await ProviderFleet.open(cloud);
      await fleet.apply(KEYS);
      const running = await fleet.start(first);
      await fleet.settled(3, 'small');
      const before = await fleet.ids();
      cloud.gate.hold('TerminateInstances', 'after');
      await fleet.scale(2);
      await cloud.gate.holds(1);
      await running.end('SIGKILL');
      cloud.gate.open();
      const left = await fleet.ids();
      expect(left).toHaveLength(2);
      expect(before).toEqual(expect.arrayContaining([...left]));
      expect(await fleet.machines()).toHaveLength(3);

      await fleet.start(second);

      await fleet.settled(2, 'small');
      expect(await fleet.ids()).toEqual(left);
      await removed(fleet);
    },
    TEST_MS,
  );

  test(
    'a drain goes on, and its machine goes after it',
    async () => {
      await using site = await Site.open();
      await using fleet = await ProviderFleet.open(cloud, site);
      const { api } = site;
      await using _kubelets = new PlayedKubelets(api, async () => await fleet.machines());
      await fleet.apply(KEYS);
      const running = await fleet.start(first);
      await fleet.settled(3, 'small');
      const before = await fleet.ids();
      const workload = await Workload.open(api, 'default');
      for (const { metadata } of await nodes()) await workload.pod(metadata.name);
      await workload.forbidEvictions(3);
      await fleet.scale(2);
      const drained = await cordoned();
      await running.end('SIGKILL');
      const holder = await fleet.leader();

      const next = await fleet.start(second);

      await eventually(async () => expect(await fleet.leader()).not.toBe(holder), PATIENCE);
      expect(await fleet.ids()).toEqual(before);
      await api.send('DELETE', `/apis/policy/v1/namespaces/default/poddisruptionbudgets/closed`);
      await eventually(async () => {
        const [pod] = (await workload.pods()).filter(({ spec }) => spec?.nodeName === drained);
        expect(pod?.metadata.deletionTimestamp).toBeDefined();
        expect(await fleet.ids()).toEqual(before);
        await api.send('DELETE', `/api/v1/namespaces/default/pods/${pod?.metadata.name}`, { gracePeriodSeconds: 0 });
      }, PATIENCE);
      await fleet.settled(2, 'small');
      expect(before).toEqual(expect.arrayContaining([...(await fleet.ids())]));
      await eventually(async () => {
        expect((await nodes()).map(({ metadata }) => metadata.name)).not.toContain(drained);
      }, PATIENCE);
      await next.end('SIGTERM');

      async function nodes(): Promise<readonly Node[]> {
        return (await api.send<{ items: readonly Node[] }>('GET', '/api/v1/nodes')).items;
      }

      /** Name of the Node that is drained, once it is. */
      async function cordoned(): Promise<string> {
        return await eventually(async () => {
          const found = (await nodes()).find(({ spec }) => spec?.unschedulable === true);
          expect(found).toBeDefined();
          return found?.metadata.name ?? '';
        }, PATIENCE);
      }
    },
    TEST_MS,
  );
});
