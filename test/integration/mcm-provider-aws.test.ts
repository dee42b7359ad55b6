import { expect, test } from '@jest/globals';

import { AwsCloud, KEYS, tagsOf } from '../cloud/aws-cloud.ts';
import { ProviderFleet } from '../cloud/provider-fleet.ts';
import { eventually } from '../expect/eventually.ts';

/* The real provider for AWS of machine-controller-manager, served by packages/mcm-provider. EC2 is played by moto. */
const PATIENCE = { timeoutMs: 300_000, intervalMs: 500 };
const TEST_MS = 3_600_000;

/** What EC2 takes for tags of an instance. */
function tagged(pairs: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(pairs).flatMap(([key, value], index) => [
      [`TagSpecification.1.Tag.${index + 1}.Key`, key],
      [`TagSpecification.1.Tag.${index + 1}.Value`, value],
    ]),
  );
}

test(
  'machines of the real provider for AWS come, roll, are replaced and go, whatever is killed, and nothing is left of them',
  async () => {
    await using cloud = await AwsCloud.start();
    await using fleet = await ProviderFleet.open(cloud);
    const { ec2 } = cloud;
    await fleet.startDriver();

    // Wrong credentials: said in the provider's words, and nothing is made.
    await fleet.apply({});
    let manager = await fleet.startManager();
    await eventually(async () => {
      const descriptions = (await fleet.machines()).map(({ status }) => status?.lastOperation?.description ?? '');
      expect(descriptions).toEqual(Array(3).fill(expect.stringContaining('providerAccessKeyId')));
    }, PATIENCE);
    expect(await ec2.instances()).toEqual([]);
    await fleet.putSecret(KEYS);
    await fleet.settled(3, 'small');

    // A roll, in the middle of which the driver and the manager are killed.
    await fleet.roll();
    await Promise.all([fleet.driver.end('SIGKILL'), manager.end('SIGKILL')]);
    await fleet.startDriver();
    manager = await fleet.startManager();
    await fleet.settled(3, 'large');

    // An instance is terminated by somebody else.
    const [victim] = await ec2.instances();
    await ec2.call('TerminateInstances', { 'InstanceId.1': victim?.id ?? '' });
    await eventually(
      async () => (await fleet.machines()).every(({ metadata }) => metadata.name !== victim?.name),
      PATIENCE,
    );
    await fleet.settled(3, 'large');

    // The account is full: said in the provider's words, and nothing is made.
    cloud.gate.refuse('RunInstances', 'InstanceLimitExceeded');
    await fleet.scale(4);
    await eventually(async () => {
      const operations = (await fleet.machines()).map(({ status }) => status?.lastOperation);
      const description = expect.stringContaining('InstanceLimitExceeded');
      expect(operations).toContainEqual(expect.objectContaining({ errorCode: 'ResourceExhausted', description }));
    }, PATIENCE);
    expect(await ec2.instances()).toHaveLength(3);
    cloud.gate.open();
    await fleet.settled(4, 'large');

    // Somebody makes an instance with the tags of the cluster; one of another cluster is none of our business.
    const stray = {
      ImageId: await ec2.first('DescribeImages', 'imageId'),
      MinCount: '1',
      MaxCount: '1',
      'NetworkInterface.1.DeviceIndex': '0',
      'NetworkInterface.1.SubnetId': await ec2.first('DescribeSubnets', 'subnetId'),
      'NetworkInterface.1.DeleteOnTermination': 'true',
      'TagSpecification.1.ResourceType': 'instance',
    };
    await ec2.call('RunInstances', { ...stray, ...tagged({ Name: 'stray', ...tagsOf(fleet.namespace) }) });
    await ec2.call('RunInstances', { ...stray, ...tagged({ Name: 'foreign', 'kubernetes.io/cluster/other': '1' }) });
    await fleet.scale(6);
    await eventually(async () => {
      const names = (await ec2.instances()).map(({ name }) => name);
      expect(names).toHaveLength(7);
      expect(names).not.toContain('stray');
      expect(names).toContain('foreign');
    }, PATIENCE);
    const foreign = (await ec2.instances()).find(({ name }) => name === 'foreign');
    await ec2.call('TerminateInstances', { 'InstanceId.1': foreign?.id ?? '' });
    await fleet.settled(6, 'large');

    await fleet.scale(0);
    await fleet.settled(0, 'large');
    await fleet.remove();
    expect(await ec2.leftovers()).toEqual([]);
    expect(fleet.driver.log).not.toContain(KEYS.providerSecretAccessKey);
    expect(manager.output).not.toContain(KEYS.providerSecretAccessKey);
  },
  TEST_MS,
);
