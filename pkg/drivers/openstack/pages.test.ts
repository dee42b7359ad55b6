import { expect, test } from '@jest/globals';

import { callOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeOpenStack } from '../../../test/fakes/fake-openstack.ts';

const { signal } = callOf();

function withPorts(count: number): FakeOpenStack {
  const cloud = new FakeOpenStack(new FakeClock());
  const port = { name: 'm', network_id: 'n', device_id: '', description: '', fixed_ips: [] };
  cloud.ports = Array.from({ length: count }, (_, i) => ({ ...port, id: `p-${i}` }));
  return cloud;
}

test.each([
  { count: 0, requests: 1 },
  { count: 1, requests: 1 },
  { count: 2, requests: 2 },
  { count: 3, requests: 2 },
  { count: 5, requests: 3 },
])('a list of $count in pages of 2 is whole after $requests requests', async ({ count, requests }) => {
  const cloud = withPorts(count);

  const ports = await cloud.cloud(2).network.portsNamed('m', signal);

  expect(ports).toHaveLength(count);
  expect(cloud.asked).toHaveLength(requests);
});

test('a service that has shorter pages than are asked for says that there is another one', async () => {
  const cloud = withPorts(3);
  cloud.answer = (request) => {
    const from = cloud.ports.findIndex(({ id }) => request.endsWith(`marker=${id}`)) + 1;
    const links = from < 2 ? [{ rel: 'next', href: 'x' }] : [{ rel: 'previous', href: 'x' }];
    return { status: 200, headers: {}, body: { ports: cloud.ports.slice(from, from + 1), ports_links: links } };
  };

  expect(await cloud.cloud(100).network.portsNamed('m', signal)).toHaveLength(3);
  expect(cloud.asked).toHaveLength(3);
});

test.each([400, 404])('a list whose last member is gone (%s) is read again, and given up at last', async (status) => {
  const cloud = withPorts(3);
  let refusals = 1;
  cloud.answer = (request) =>
    request.includes('marker=') && refusals-- > 0 ? { status, headers: {}, body: '' } : undefined;

  expect(await cloud.cloud(2).network.portsNamed('m', signal)).toHaveLength(3);
  refusals = 100;
  await expect(cloud.cloud(2).network.portsNamed('m', signal)).rejects.toMatchObject({
    code: 'Unavailable',
    detail: 'listing ports: the list changed while it was read',
  });
});

test('a cloud without routers has no floating IPs', async () => {
  const cloud = withPorts(0);
  cloud.answer = () => ({ status: 404, headers: {}, body: '' });

  expect(await cloud.cloud().network.floatingIPs({ description: 'x' }, signal)).toEqual([]);
  await expect(cloud.cloud().network.portsNamed('m', signal)).rejects.toMatchObject({ code: 'InvalidArgument' });
});

const GROUPS = [
  { id: 'g-1', name: 'own', project_id: 'project' },
  { id: 'g-2', name: 'own', project_id: 'other' },
  { id: 'g-3', name: 'shared', project_id: 'other' },
  { id: 'g-4', name: 'twice', project_id: 'project' },
  { id: 'g-5', name: 'twice', project_id: 'project' },
  { id: 'g-6', name: 'foreign', project_id: 'other' },
  { id: 'g-7', name: 'foreign', project_id: 'another' },
];

test.each([
  { group: 'own', id: 'g-1' },
  { group: 'g-2', id: 'g-2' },
  { group: 'shared', id: 'g-3' },
  { group: 'twice', id: undefined },
  { group: 'foreign', id: undefined },
  { group: 'none', id: undefined },
])('security group $group is $id: a name is first of all one of the project', async ({ group, id }) => {
  const cloud = withPorts(0);
  cloud.answer = () => ({ status: 200, headers: {}, body: { security_groups: GROUPS } });

  const [found] = await Promise.allSettled([cloud.cloud().network.securityGroupIDs([group], 'at', signal)]);

  expect(found).toMatchObject(
    id === undefined ? { reason: { code: 'InvalidArgument' } } : { status: 'fulfilled', value: [id] },
  );
});
