import { afterEach, expect, test } from '@jest/globals';

import type { DriverCode } from '../../pkg/driver/error.ts';
import type { SecretTexts } from '../drivers/requests.ts';
import { eventually } from '../expect/eventually.ts';
import { sampledDescribe } from '../expect/sampled.ts';
import { Api } from './api.ts';
import type { Bed } from './bed.ts';
import { callOf, create, heeding, newDriver, remove, requestFor } from './driver.ts';
import { belongingsOf, clear, SELDOM } from './leftovers.ts';
import { LOSSY_REGION, PROJECTS, PUBLIC_KEY, seedImage } from './seed.ts';

/** The driver's unit tests show each on a simulated cloud. */
const describeInTurn = sampledDescribe(2);

interface Row {
  readonly what: string;
  readonly change?: Readonly<Record<string, unknown>>;
  readonly secret?: SecretTexts;
  readonly code: DriverCode;
  readonly says: string | RegExp;
}

const NOWHERE = '00000000-0000-4000-8000-000000000000';

/** What a class or Secret asks for and does not get. */
const ROWS: readonly Row[] = [
  { what: 'an unknown flavor', change: { flavorName: 'none' }, code: 'ResourceExhausted', says: 'flavorName' },
  { what: 'an unknown image', change: { imageID: NOWHERE }, code: 'InvalidArgument', says: 'find requested image' },
  {
    what: 'an unknown name of an image',
    change: { imageID: undefined, imageName: 'none' },
    code: 'Internal',
    says: 'there is no image none',
  },
  {
    what: 'a name that two images have',
    change: { imageID: undefined, imageName: 'twice' },
    code: 'Internal',
    says: 'several images have the name twice',
  },
  { what: 'an unknown network', change: { networkID: NOWHERE }, code: 'InvalidArgument', says: NOWHERE },
  {
    what: 'an unknown name of a network',
    change: { networkID: undefined, networks: [{ name: 'none' }] },
    code: 'InvalidArgument',
    says: 'networks[0].name: there is no network none',
  },
  {
    what: 'an unknown security group',
    change: { securityGroups: ['group-a', 'none'] },
    code: 'InvalidArgument',
    says: 'securityGroups[1]: there is no security group none',
  },
  { what: 'an unknown key', change: { keyName: 'none' }, code: 'InvalidArgument', says: 'Invalid key_name' },
  { what: 'an unknown zone', change: { availabilityZone: 'none' }, code: 'InvalidArgument', says: 'zone' },
  {
    what: 'an unknown region',
    change: { region: 'none' },
    code: 'InvalidArgument',
    says: 'there is one in lossy, region-1',
  },
  {
    what: 'a flavor that fits no host',
    change: { flavorName: 'huge' },
    code: 'ResourceExhausted',
    says: 'No valid host',
  },
  {
    what: 'a host that builds nothing',
    change: { availabilityZone: 'broken' },
    code: 'Internal',
    says: 'host is broken',
  },
  { what: 'a wrong password', secret: { password: 'wrong' }, code: 'Unauthenticated', says: 'requires authentication' },
  {
    what: 'an unknown project',
    secret: { tenantName: 'none' },
    code: 'Unauthenticated',
    says: 'requires authentication',
  },
  { what: 'no Keystone', secret: { authURL: 'http://127.0.0.1:1/v3' }, code: 'Unavailable', says: '127.0.0.1:1' },
];

/** What cannot be made, why, and that nothing stays of it. */
export function describeRefusals(bed: Bed): void {
  describeInTurn('a machine that cannot be made', () => {
    afterEach(async () => {
      await clear(bed);
    });

    // promise: openstack/exist-ambiguous-named-member
    // promise: openstack/cloud/unknown-flavor-resourceexhausted-two
    test('says why, leaves nothing, and is made by the same driver when it is put right', async () => {
      await using driver = newDriver();
      await seedImage(bed.admin, 'twice');
      await seedImage(bed.admin, 'twice');

      const attempts = ROWS.map(async ({ what, change, secret, code, says }, i) => {
        const request = requestFor(bed, `m-${i}`, change, secret === undefined ? {} : { secret });
        const made = async () => await driver.createMachine(request, callOf());
        const err = await (code === 'Unavailable' ? made() : heeding('create', made)).catch(
          (reason: unknown) => reason,
        );
        expect({ what, err }).toMatchObject({ what, err: { code, detail: expect.stringContaining(String(says)) } });
      });
      await Promise.all(attempts);
      expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
      await expect(create(driver, requestFor(bed, 'm-1'))).resolves.toMatchObject({ nodeName: 'm-1' });
    });

    test('because there is no floating IP for it has no server either, and is made when there is one', async () => {
      await using driver = newDriver();
      const allocated = requestFor(bed, 'm-1', { floatingIP: { networkName: 'outside' } });
      const given = requestFor(bed, 'm-2', { floatingIP: { networkName: 'outside', address: '172.24.4.200' } });
      const setQuota = async (floatingip: number) => {
        const path = `/v2.0/quotas/${bed.user.projectID}`;
        await bed.admin.call('neutron', 'PUT', path, { quota: { floatingip } });
      };
      await setQuota(0);
      try {
        await expect(driver.createMachine(allocated, callOf())).rejects.toMatchObject({
          code: 'ResourceExhausted',
          detail: expect.stringContaining('allocating the floating IP: 409'),
        });
        await expect(driver.createMachine(given, callOf())).rejects.toMatchObject({
          code: 'InvalidArgument',
          detail: expect.stringContaining('there is no floating IP 172.24.4.200 in the project'),
        });
        expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
      } finally {
        await setQuota(-1);
      }

      await create(driver, allocated);

      const { ports, floatingIPs } = await belongingsOf(bed);
      expect(floatingIPs).toMatchObject([{ port_id: ports[0]?.id }]);
    });

    // promise: openstack/no-router-no-server
    test('because no router leads outside, or what routes is down, has no server either, and is made when that is over', async () => {
      await using driver = newDriver();
      const floatingIP = { networkName: 'outside' };
      const request = requestFor(bed, 'm-1', { floatingIP });
      const { routers } = await bed.admin.call<{ routers: { id: string }[] }>('neutron', 'GET', '/v2.0/routers');
      const path = `/v2.0/routers/${routers[0]?.id}`;
      const subnet = { subnet_id: bed.seeds.subnetID };
      await bed.admin.call('neutron', 'PUT', `${path}/remove_router_interface`, subnet);
      try {
        await expect(
          heeding('create', async () => await driver.createMachine(request, callOf())),
        ).rejects.toMatchObject({
          code: 'InvalidArgument',
          detail: expect.stringMatching(/^allocating the floating IP: 404 External network \S+ is not reachable/),
        });
        expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
      } finally {
        await bed.admin.call('neutron', 'PUT', `${path}/add_router_interface`, subnet);
      }
      await create(driver, request);

      const { proxy } = bed;
      let refused = 0;
      proxy.begin((method, url) => {
        const isRefused = method === 'POST' && url.endsWith('/floatingips') && refused++ < 2;
        return isRefused ? { status: 503, retryAfter: '1' } : undefined;
      });
      const other = requestFor(bed, 'm-2', { floatingIP, region: LOSSY_REGION }, { secret: proxy.secret });
      await expect(driver.createMachine(other, callOf())).rejects.toMatchObject({ code: 'Unavailable' });
      expect((await belongingsOf(bed)).servers).toMatchObject([{ name: 'm-1' }]);
      await create(driver, other);

      const { servers, ports, floatingIPs } = await belongingsOf(bed);
      expect([servers.length, refused]).toEqual([2, 3]);
      expect(new Set(floatingIPs.map(({ port_id: port }) => port))).toEqual(new Set(ports.map(({ id }) => id)));
      expect(floatingIPs).toHaveLength(2);
    });

    // promise: openstack/quota-zone-subnet-room
    // promise: openstack/cloud/capacity-quota-resourceexhausted-machine
    test('because there is no room, in quota, zone or subnet, is made when there is', async () => {
      await using driver = newDriver();
      const { tightNetworkID, networkID } = bed.seeds;
      // Another project's network: addresses of pods need its owner.
      const shared = { networkID: undefined, networks: [{ id: networkID }], securityGroups: undefined };
      const quota = { change: shared, secret: { tenantName: PROJECTS.small } };
      const zone = { change: { flavorName: 'half', availabilityZone: 'small' }, secret: {} };
      const small = async (name: string) => await create(driver, requestFor(bed, name, quota.change, quota));
      const half = async (name: string) => await create(driver, requestFor(bed, name, zone.change));
      const tight = { networkID: tightNetworkID };
      const { ports } = await bed.user.call<{ ports: object[] }>(
        'neutron',
        'GET',
        `/v2.0/ports?network_id=${tightNetworkID}`,
      );
      const fill = Array.from({ length: 5 - ports.length }, async () => {
        await bed.user.call('neutron', 'POST', '/v2.0/ports', { port: { network_id: tightNetworkID, name: 'other' } });
      });

      await Promise.all([...fill, small('q-1'), small('q-2'), half('z-1'), half('z-2')]);

      await expect(small('q-3')).rejects.toMatchObject({
        code: 'ResourceExhausted',
        detail: expect.stringContaining('Quota'),
      });
      await expect(half('z-3')).rejects.toMatchObject({ code: 'ResourceExhausted' });
      await expect(create(driver, requestFor(bed, 't-1', tight))).rejects.toMatchObject({
        code: 'ResourceExhausted',
      });
      const removeSmall = async (name: string) => await remove(driver, requestFor(bed, name, quota.change, quota));
      await Promise.all([removeSmall('q-1'), remove(driver, requestFor(bed, 'z-1', zone.change))]);
      await Promise.all([small('q-3'), half('z-3')]);
      await Promise.all([removeSmall('q-2'), removeSmall('q-3')]);
    });

    // promise: openstack/changed-password-told-correction
    // promise: openstack/cloud/wrong-credentials-unauthenticated-corrected
    test('since its password was changed is made when the Secret has the new one, and by an application credential', async () => {
      await using driver = newDriver();
      const old = { username: 'changing', password: 'old-password' };
      const secret = { ...old, password: 'new-password' };
      const id = await newUser(bed, old);
      await create(driver, requestFor(bed, 'm-1', {}, { secret: old }));
      await bed.admin.call('keystone', 'PATCH', `/v3/users/${id}`, { user: { password: secret.password } });

      // The token of before is good for a while: services remember it.
      await using another = newDriver();
      const refused = create(another, requestFor(bed, 'm-2', {}, { secret: old }));
      await expect(refused).rejects.toMatchObject({ code: 'Unauthenticated' });
      // Keystone counts in seconds: a token of the second in which the password was changed is void.
      const made = async () => await another.createMachine(requestFor(bed, 'm-2', {}, { secret }), callOf());
      await eventually(made, SELDOM);
      const application = await applicationCredential(bed, id, secret);
      const file = { ...NO_KEYS, 'clouds.yaml': cloudsOf(bed, id, secret), cloud: 'bed' };
      expect(await another.getMachineStatus(requestFor(bed, 'm-1', {}, { secret: file }), callOf())).toMatchObject({
        nodeName: 'm-1',
      });
      const { providerID } = await driver.getMachineStatus(
        requestFor(bed, 'm-2', {}, { secret: application }),
        callOf(),
      );

      expect(providerID).toMatch(/^openstack:/);
      expect((await belongingsOf(bed)).servers.map(({ name }) => name).toSorted()).toEqual(['m-1', 'm-2']);
    });
  });
}

/** What a clouds.yaml says in their place. */
const NO_KEYS = { authURL: '', username: '', password: '', tenantName: '', domainName: '' };

function cloudsOf({ settings }: Bed, user_id: string, { password }: NamedUser): string {
  const auth = { auth_url: settings.authURL, user_id, password };
  const project = { project_name: PROJECTS.machines, project_domain_id: 'default' };
  return JSON.stringify({ clouds: { bed: { auth: { ...auth, ...project }, interface: 'public' }, other: {} } });
}

interface NamedUser {
  readonly username: string;
  readonly password: string;
}

/** A member of the driver's project, with the key that the classes name. */
async function newUser(bed: Bed, { username: name, password }: NamedUser): Promise<string> {
  const { admin, seeds } = bed;
  const { user } = await admin.call<{ user: { id: string } }>('keystone', 'POST', '/v3/users', {
    user: { name, password, domain_id: 'default' },
  });
  const { roles } = await admin.call<{ roles: { id: string }[] }>('keystone', 'GET', '/v3/roles?name=member');
  await admin.call('keystone', 'PUT', `/v3/projects/${seeds.projectID}/users/${user.id}/roles/${roles[0]?.id}`);
  const own = await Api.open(bed.settings, { user: name, password, project: PROJECTS.machines });
  await own.call('nova', 'POST', '/v2.1/os-keypairs', { keypair: { name: 'key', public_key: PUBLIC_KEY } });
  return user.id;
}

/** Takes the place of user, project and password. */
async function applicationCredential(bed: Bed, id: string, { username, password }: NamedUser): Promise<SecretTexts> {
  const own = await Api.open(bed.settings, { user: username, password, project: PROJECTS.machines });
  const path = `/v3/users/${id}/application_credentials`;
  const { application_credential: made } = await own.call<{ application_credential: { id: string; secret: string } }>(
    'keystone',
    'POST',
    path,
    { application_credential: { name: 'driver' } },
  );
  const none = { username: '', password: '', tenantName: '', domainName: '' };
  return { ...none, applicationCredentialID: made.id, applicationCredentialSecret: made.secret };
}
