import { afterEach, describe, expect, test } from '@jest/globals';

import { stubOf } from '../drivers/requests.ts';
import { eventually } from '../expect/eventually.ts';
import type { Bed } from './bed.ts';
import { callOf, create, newDriver, remove, requestFor } from './driver.ts';
import { belongingsOf, clear, SELDOM, type SeenPort, type SeenServer } from './leftovers.ts';
import { openStackClass, secretOf, TAGS } from './requests.ts';

/** What a machine is in the cloud, and what is left of it. */
export function describeMachines(bed: Bed): void {
  const nothing = { servers: [], ports: [], floatingIPs: [] };

  describe('a machine in OpenStack', () => {
    afterEach(async () => {
      await clear(bed);
    });

    // promise: openstack/flavor-image-zone-name
    // promise: openstack/cloud/flavor-image-zone-server
    // promise: openstack/cloud/security-groups-id-name
    // promise: openstack/cloud/floating-ip-same-address
    test('is made as its class says, with groups by ID and by name, and goes with all that belongs to it', async () => {
      await using driver = newDriver();
      const { networkID, secondNetworkID, subnetID, securityGroupIDs, externalNetworkID, imageID } = bed.seeds;
      const [groupA, groupB] = securityGroupIDs;
      const request = requestFor(bed, 'm-1', {
        imageID: undefined,
        imageName: 'image',
        securityGroups: [groupA, 'group-b'],
        networkID: undefined,
        networks: [{ id: networkID, podNetwork: true }, { name: 'second' }],
        podNetworkCIDRs: ['10.96.0.0/11', '10.32.0.0/11'],
        floatingIP: { networkName: 'outside' },
      });

      const vm = await create(driver, request);

      const { servers, ports, floatingIPs } = await belongingsOf(bed);
      const id = vm.providerID.split('/').at(-1);
      expect(vm.providerID).toBe(`openstack:///${bed.settings.region}/${id}`);
      expect(servers).toMatchObject([
        {
          id,
          name: 'm-1',
          status: 'ACTIVE',
          key_name: 'key',
          image: { id: imageID },
          flavor: { original_name: 'tiny' },
        },
      ]);
      expect(servers).toMatchObject([{ 'OS-EXT-AZ:availability_zone': 'nova', metadata: TAGS }]);
      expect(ports.map(({ name, device_id: device }) => [name, device])).toEqual([
        ['m-1', id],
        ['m-1', id],
      ]);
      expect(ports.map(({ security_groups: groups }) => groups.toSorted())).toEqual([
        [groupA, groupB].toSorted(),
        [groupA, groupB].toSorted(),
      ]);
      expect(ports.map(({ tags }) => tags.toSorted())).toEqual([Object.keys(TAGS), Object.keys(TAGS)]);
      expect(ports.flatMap((port) => port.allowed_address_pairs.map((pair) => pair.ip_address)).toSorted()).toEqual([
        '10.32.0.0/11',
        '10.96.0.0/11',
      ]);
      const inside = Object.values(servers[0]?.addresses ?? {})
        .flat()
        .map(({ addr }) => addr);
      const shown = vm.addresses.filter(({ type }) => type === 'InternalIP').map(({ address }) => address);
      expect(inside).toEqual(expect.arrayContaining(shown));
      expect(shown).toHaveLength(2);
      expect(vm.addresses.filter(({ type }) => type === 'ExternalIP')).toEqual([
        { type: 'ExternalIP', address: floatingIPs[0]?.floating_ip_address },
      ]);
      expect([secondNetworkID, subnetID, externalNetworkID]).not.toContain(undefined);

      await remove(driver, request);
      expect(await belongingsOf(bed)).toEqual(nothing);
    });

    test('is made as the entries of its networks say, by ID of the flavor and name of the server group, without key and zone', async () => {
      await using driver = newDriver();
      const { networkID, secondNetworkID, securityGroupIDs } = bed.seeds;
      const [, groupB] = securityGroupIDs;
      const { server_group: group } = await bed.user.call<{ server_group: { id: string } }>(
        'nova',
        'POST',
        '/v2.1/os-server-groups',
        { server_group: { name: 'spread', policies: ['soft-anti-affinity'] } },
      );
      const taken = await fixedAddressIn(bed, secondNetworkID);
      const networks = [
        { id: networkID, podNetwork: true, portSecurity: false },
        { id: secondNetworkID, securityGroups: ['group-b'], vnicType: 'normal', fixedIP: taken },
      ];
      const none = { keyName: undefined, availabilityZone: undefined, podNetworkCidr: undefined };
      const flavor = { flavorName: undefined, flavorID: '1', serverGroupName: 'spread' };
      const change = { networkID: undefined, networks, ...none, ...flavor };

      const { providerID } = await create(driver, requestFor(bed, 'm-1', change));

      const { servers, ports } = await belongingsOf(bed);
      expect(servers).toMatchObject([{ key_name: null, flavor: { original_name: 'tiny' } }]);
      expect(ports.find(({ network_id: network }) => network === networkID)).toMatchObject({
        port_security_enabled: false,
        security_groups: [],
        allowed_address_pairs: [],
      });
      expect(ports.find(({ network_id: network }) => network === secondNetworkID)).toMatchObject({
        security_groups: [groupB],
        fixed_ips: [{ ip_address: taken }],
      });
      const found = await bed.user.call('nova', 'GET', `/v2.1/os-server-groups/${group.id}`);
      expect(found).toMatchObject({ server_group: { members: [providerID.split('/').at(-1)] } });
      await expect(create(driver, requestFor(bed, 'm-2', change))).rejects.toMatchObject({
        code: 'FailedPrecondition',
        detail: expect.stringContaining('creating the port: 409'),
      });
      expect((await belongingsOf(bed)).ports).toHaveLength(2);
      await bed.user.call('nova', 'DELETE', `/v2.1/os-server-groups/${group.id}`);
    });

    // promise: openstack/servers-ports-disks-gardeners
    // promise: openstack/cloud/classes-gardeners-provider-requests
    // promise: openstack/cloud/made-found-kept-deleted
    test("of an earlier provider is found, kept and deleted with its port, by its name and its class's tags; ours differs in what says whose it is alone", async () => {
      await using driver = newDriver();
      const change = { subnetIDs: [bed.seeds.subnetID], podNetworkCIDRs: ['10.96.0.0/11', '10.32.0.0/11'] };
      const serverID = await asGardenerMakes(bed, 'm-1');
      const request = requestFor(bed, 'm-1', change);

      const created = await create(driver, request);
      const listed = await driver.listMachines(request, callOf());

      const { providerID } = created;
      expect(providerID).toBe(`openstack:///${bed.settings.region}/${serverID}`);
      const known = { machineName: 'm-1', machineUID: undefined, machineNamespace: undefined };
      expect(listed).toEqual([{ providerID, ...known, state: 'ACTIVE' }]);
      await create(driver, requestFor(bed, 'm-2', change));
      const { servers, ports } = await belongingsOf(bed);
      const [theirs, ours] = ['m-1', 'm-2'].map((name) => ({
        server: shapeOf(servers.find((one) => one.name === name)),
        port: shapeOf(ports.find((one) => one.name === name)),
      }));
      expect(ours).toEqual(theirs);
      expect(ours).toMatchObject({ server: { metadata: TAGS }, port: { tags: Object.keys(TAGS) } });

      await Promise.all([request, requestFor(bed, 'm-2', change)].map(async (one) => await remove(driver, one)));
      expect(await belongingsOf(bed)).toEqual(nothing);
    });

    test('that was deleted behind our back is gone, and so is what it leaves', async () => {
      await using driver = newDriver();
      const { providerID } = await create(driver, requestFor(bed, 'm-1'));
      const request = requestFor(bed, 'm-1', {}, { providerID });
      await bed.user.call('nova', 'DELETE', `/v2.1/servers/${providerID.split('/').at(-1)}`);
      await eventually(async () => (await belongingsOf(bed)).servers.length === 0, SELDOM);

      await expect(driver.getMachineStatus(request, callOf())).rejects.toMatchObject({ code: 'NotFound' });
      expect((await belongingsOf(bed)).ports).toHaveLength(1);
      await remove(driver, request);
      expect(await belongingsOf(bed)).toEqual(nothing);
    });

    // promise: openstack/tags-class-left-alone
    // promise: openstack/cloud/lost-objects-server-tags
    test('that lost the tags of its class is left alone, and one that lost those of Nova is not', async () => {
      await using driver = newDriver({ pageSize: 1 });
      const [left, found] = await Promise.all([
        create(driver, requestFor(bed, 'm-1')),
        create(driver, requestFor(bed, 'm-2')),
      ]);
      const idOf = ({ providerID }: { providerID: string }): string => providerID.split('/').at(-1) ?? '';
      await bed.user.call('nova', 'DELETE', `/v2.1/servers/${idOf(left)}/metadata/kubernetes.io-role-node`);
      await bed.user.call('nova', 'DELETE', `/v2.1/servers/${idOf(found)}/tags`);

      const listed = await driver.listMachines(requestFor(bed, 'm-1'), callOf());
      expect(listed.map(({ providerID }) => providerID)).toEqual([found.providerID]);
      const request = requestFor(bed, 'm-1', {}, { providerID: left.providerID });
      await expect(driver.getMachineStatus(request, callOf())).rejects.toMatchObject({ code: 'NotFound' });
      await remove(driver, stubOf('m-2', found.providerID, openStackClass(bed), secretOf(bed)));
      await eventually(async () => {
        const { servers, ports } = await belongingsOf(bed);
        expect(servers.map(({ id }) => id)).toEqual([idOf(left)]);
        expect(ports.map(({ name }) => name)).toEqual(['m-1']);
      }, SELDOM);
    });

    // promise: openstack/tags-class-left-alone
    test('that lost a tag of its class keeps port and floating IP when its Machine is deleted', async () => {
      await using driver = newDriver();
      const request = requestFor(bed, 'm-1', { floatingIP: { networkName: 'outside' } });
      const { providerID } = await create(driver, request);
      const id = providerID.split('/').at(-1) ?? '';
      await bed.user.call('nova', 'DELETE', `/v2.1/servers/${id}/metadata/kubernetes.io-role-node`);
      const before = await belongingsOf(bed);

      const known = requestFor(bed, 'm-1', { floatingIP: { networkName: 'outside' } }, { providerID });
      await expect(driver.deleteMachine(known, callOf())).rejects.toMatchObject({ code: 'NotFound' });

      expect(await belongingsOf(bed)).toMatchObject({
        servers: [{ id, status: 'ACTIVE' }],
        ports: before.ports.map(({ id: port }) => ({ id: port, device_id: id })),
        floatingIPs: before.floatingIPs,
      });
      expect(before.floatingIPs).toMatchObject([{ port_id: before.ports[0]?.id }]);
      await expect(driver.createMachine(request, callOf())).rejects.toMatchObject({
        code: 'FailedPrecondition',
        detail: expect.stringContaining(`server ${id} was created for machine shoot/m-1`),
      });
    });

    test('is listed on whatever page, and is one server again when another one was made for it', async () => {
      await using driver = newDriver({ pageSize: 1 });
      const first = await create(driver, requestFor(bed, 'm-1'));
      const [made] = (await belongingsOf(bed)).servers;
      const { imageID, networkID } = bed.seeds;
      await bed.user.call('nova', 'POST', '/v2.1/servers', {
        server: {
          name: 'm-1',
          flavorRef: '1',
          imageRef: imageID,
          networks: [{ uuid: networkID }],
          metadata: made?.metadata ?? {},
        },
      });

      expect(await driver.listMachines(requestFor(bed, 'm-1'), callOf())).toHaveLength(2);
      await expect(driver.getMachineStatus(requestFor(bed, 'm-1'), callOf())).rejects.toMatchObject({
        code: 'OutOfRange',
      });
      const again = await create(driver, requestFor(bed, 'm-1'));

      expect(again.providerID).toBe(first.providerID);
      expect((await belongingsOf(bed)).servers.map(({ id }) => id)).toEqual([made?.id]);
    });
  });
}

/** An address that nobody has. */
async function fixedAddressIn({ user }: Bed, network_id: string): Promise<string> {
  const { port } = await user.call<{ port: { id: string; fixed_ips: { ip_address: string }[] } }>(
    'neutron',
    'POST',
    '/v2.0/ports',
    { port: { network_id } },
  );
  await user.call('neutron', 'DELETE', `/v2.0/ports/${port.id}`);
  return port.fixed_ips[0]?.ip_address ?? '';
}

/** Makes the server of a class with a subnet by the requests of Gardener's provider, in its order; says its ID. */
async function asGardenerMakes({ user, seeds }: Bed, name: string): Promise<string> {
  const { imageID, networkID: network_id, subnetID: subnet_id } = seeds;
  const [group] = seeds.securityGroupIDs;
  const fields = { name, network_id, fixed_ips: [{ subnet_id }], security_groups: [group] };
  const { port } = await user.call<{ port: { id: string } }>('neutron', 'POST', '/v2.0/ports', { port: fields });
  await user.call('neutron', 'PUT', `/v2.0/ports/${port.id}/tags`, { tags: Object.keys(TAGS) });
  const { server } = await user.call<{ server: { id: string } }>('nova', 'POST', '/v2.1/servers', {
    server: {
      name,
      flavorRef: '1',
      imageRef: imageID,
      networks: [{ uuid: network_id, port: port.id }],
      security_groups: [{ name: 'group-a' }],
      metadata: TAGS,
      user_data: Buffer.from('#cloud-config\n').toString('base64'),
      availability_zone: 'nova',
      key_name: 'key',
    },
  });
  // The provider was stopped before it let the packets of pods pass.
  return server.id;
}

/** What differs from one server, or port, to the next. */
const ITS_OWN = new Set(
  (
    'id name links created updated hostId addresses OS-SRV-USG:launched_at ' +
    'device_id mac_address fixed_ips description created_at updated_at revision_number'
  ).split(' '),
);

/** All that is the same for two machines of a class, without what this driver says of whose they are. */
function shapeOf(seen: object | undefined): Record<string, unknown> {
  const {
    metadata = {},
    tags = [],
    allowed_address_pairs: pairs = [],
    ...others
  } = seen as Partial<SeenServer & SeenPort>;
  const isOfBoth = (key: string): boolean => !key.startsWith('machinist-');
  return {
    ...Object.fromEntries(Object.entries(others).filter(([key]) => !ITS_OWN.has(key))),
    metadata: Object.fromEntries(Object.entries(metadata).filter(([key]) => isOfBoth(key))),
    tags: tags.filter(isOfBoth).toSorted(),
    // Neutron adds the port's own MAC.
    pairs: pairs.map(({ ip_address: address }) => address),
  };
}
