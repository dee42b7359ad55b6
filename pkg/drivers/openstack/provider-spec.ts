import { parseGoBool } from '../../apis/go-bool.ts';
import { atLeast, fields, flag, invalid, text, type Fields, memberOf, optionalText } from '../spec-fields.ts';

export interface DesiredNetwork {
  /** Exactly one of both. */
  readonly by: 'id' | 'name';
  readonly value: string;
  /** Whether pods have their addresses there: ports then let packets of the pod CIDRs pass. */
  readonly isPodNetwork: boolean;
  readonly port: DesiredPortSettings;
}

/** What Neutron is told of the port in a network; what is undefined is left to Neutron. */
export interface DesiredPortSettings {
  /** Names or IDs; undefined: those of the class. */
  readonly securityGroups: readonly string[] | undefined;
  /** False: no security groups, and no limits to addresses. */
  readonly hasPortSecurity: boolean | undefined;
  readonly vnicType: string | undefined;
  readonly profile: Fields | undefined;
  readonly fixedIP: string | undefined;
}

/** That of a class which says nothing of it. */
export const PLAIN_PORT: DesiredPortSettings = {
  securityGroups: undefined,
  hasPortSecurity: undefined,
  vnicType: undefined,
  profile: undefined,
  fixedIP: undefined,
};

export interface DesiredFloatingIP {
  readonly by: 'id' | 'name';
  readonly network: string;
  /** One that exists; undefined: one is allocated, and released with the server. */
  readonly address: string | undefined;
}

/** A volume that the server has beside its root disk. */
export interface DesiredDataVolume {
  /** Which of the machine's it is. */
  readonly name: string;
  /** In GB. */
  readonly size: number;
  /** Undefined: Cinder's default. */
  readonly type: string | undefined;
}

/** `providerSpec.spec` of a MachineClass, as Gardener's provider for OpenStack has it, with what is ours. */
export interface OpenStackSpec {
  readonly region: string;
  /** Undefined: Nova's default. */
  readonly availabilityZone: string | undefined;
  readonly image: { readonly by: 'id' | 'name'; readonly value: string };
  readonly flavor: { readonly by: 'id' | 'name'; readonly value: string };
  readonly keyName: string | undefined;
  /** Names or IDs. */
  readonly securityGroups: readonly string[];
  /** Become metadata of the server; two of them say whose it is. */
  readonly tags: Readonly<Record<string, string>>;
  readonly networks: readonly DesiredNetwork[];
  /** In which the port of the only network has an address each; empty: where Neutron likes. */
  readonly subnetIDs: readonly string[];
  readonly podNetworkCIDRs: readonly string[];
  /** In GB; undefined: the disk of the flavor. */
  readonly rootDiskSize: number | undefined;
  readonly rootDiskType: string | undefined;
  /** In the order in which they are attached. */
  readonly dataVolumes: readonly DesiredDataVolume[];
  readonly useConfigDrive: boolean | undefined;
  readonly serverGroup: { readonly by: 'id' | 'name'; readonly value: string } | undefined;
  readonly floatingIP: DesiredFloatingIP | undefined;
}

const API_VERSION = 'openstack.machine.gardener.cloud/v1alpha1';
const KIND = 'MachineProviderConfig';
export const MEMBERS = [
  'imageID',
  'imageName',
  'region',
  'availabilityZone',
  'flavorID',
  'flavorName',
  'keyName',
  'securityGroups',
  'tags',
  'networkID',
  'networks',
  'subnetID',
  'subnetIDs',
  'podNetworkCidr',
  'podNetworkCIDRs',
  'rootDiskSize',
  'rootDiskType',
  'dataVolumes',
  'useConfigDrive',
  'serverGroupID',
  'serverGroupName',
  'bootFromVolume',
  'floatingIP',
];
/** What the two tags contain that say whose a server is. */
export const MARKS = ['kubernetes.io-cluster-', 'kubernetes.io-role-'] as const;
const LONGEST_TAG = 255;
/** Short enough for the description of a volume, which names the machine as well. */
const VOLUME_NAME = /^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$/;
const METADATA_KEY = /^[a-zA-Z0-9_.: -]{1,255}$/;

/** Checks a provider spec. Throws InvalidArgument that names the member; retrying cannot help until the class changes. */
export function parseProviderSpec(value: unknown): OpenStackSpec {
  const spec = membersOf(value);
  const at = (name: string): string => `providerSpec.spec.${name}`;
  const required = (name: string): string => text(spec[name], at(name));
  const { networks, subnetIDs } = networksOf(spec, at);
  const rootDiskSize = diskSizeOf(spec, at);
  const rootDiskType = optionalText(spec['rootDiskType'], at('rootDiskType'));
  return {
    region: required('region'),
    availabilityZone: optionalText(spec['availabilityZone'], at('availabilityZone')),
    image: oneOf(spec, 'imageID', 'imageName', at, 'first'),
    flavor: oneOf(spec, 'flavorID', 'flavorName', at, 'wrong'),
    keyName: optionalText(spec['keyName'], at('keyName')),
    securityGroups: list(spec['securityGroups'], at('securityGroups')),
    tags: tagsOf(spec, at),
    networks,
    subnetIDs,
    podNetworkCIDRs: podNetworkCIDRsOf(spec, at),
    rootDiskSize,
    rootDiskType: rootDiskSize === undefined ? undefined : rootDiskType,
    dataVolumes: dataVolumesOf(spec, at),
    useConfigDrive:
      spec['useConfigDrive'] === undefined ? undefined : flag(spec['useConfigDrive'], at('useConfigDrive')),
    serverGroup: serverGroupOf(spec, at),
    floatingIP: floatingIPOf(spec, at),
  };
}

/** The keys of the two tags that say whose a server is; fewer for a spec that is wrong. */
export function marksIn(tags: unknown): readonly string[] {
  if (typeof tags !== 'object' || tags === null) return [];
  const keys = Object.keys(tags);
  return MARKS.flatMap((mark) => keys.find((key) => key.includes(mark)) ?? []);
}

export interface Findable {
  readonly region: string | undefined;
  readonly marks: readonly string[];
  readonly hasDisk: boolean;
  /** Whether it has floating IPs that are allocated for its machines. */
  readonly hasFloatingIP: boolean;
}

/** What is needed to find and delete servers, of a spec that may have become wrong: that must not keep servers alive. */
export function findableIn(value: unknown): Findable {
  const spec = memberOf(value, 'spec');
  const region = memberOf(spec, 'region');
  const floatingIP = memberOf(spec, 'floatingIP');
  const isEnabled = memberOf(memberOf(spec, 'bootFromVolume'), 'enabled') === true;
  const dataVolumes = memberOf(spec, 'dataVolumes');
  return {
    region: typeof region === 'string' ? region : undefined,
    marks: marksIn(memberOf(spec, 'tags')),
    hasFloatingIP: floatingIP !== undefined && floatingIP !== null && memberOf(floatingIP, 'address') === undefined,
    hasDisk:
      isEnabled || Boolean(memberOf(spec, 'rootDiskSize')) || (Array.isArray(dataVolumes) && dataVolumes.length > 0),
  };
}

/** The floating IP that a server is to have, of a spec that may have become wrong; without `address` it is one of its own. */
export function floatingIPIn(value: unknown): Pick<DesiredFloatingIP, 'address'> | undefined {
  const wanted = memberOf(memberOf(value, 'spec'), 'floatingIP');
  if (wanted === undefined || wanted === null) return undefined;
  const address = memberOf(wanted, 'address');
  return { address: typeof address === 'string' ? address : undefined };
}

/** `true` or `false` of a Secret, as Go's strconv reads it. Throws InvalidArgument that names `path`. */
export function parseFlag(value: string, path: string): boolean {
  const parsed = parseGoBool(value);
  if (parsed === undefined) throw invalid(`${path}: must be true or false`);
  return parsed;
}

function membersOf(value: unknown): Fields {
  const config = fields(value ?? {}, 'providerSpec', ['apiVersion', 'kind', 'metadata', 'spec']);
  const { apiVersion = API_VERSION, kind = KIND } = config;
  if (apiVersion !== API_VERSION) throw invalid(`providerSpec.apiVersion: must be ${API_VERSION}`);
  if (kind !== KIND) throw invalid(`providerSpec.kind: must be ${KIND}`);
  return fields(config['spec'] ?? {}, 'providerSpec.spec', MEMBERS);
}

type At = (name: string) => string;

function list(value: unknown, path: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid(`${path}: must be a list`);
  return value.map((member: unknown, i) => text(member, `${path}[${i}]`));
}

/** What is said by ID or by name: by exactly one, or the first of both counts. */
function oneOf(
  spec: Fields,
  id: string,
  name: string,
  at: At,
  both: 'first' | 'wrong',
): { readonly by: 'id' | 'name'; readonly value: string } {
  const [byID, byName] = [optionalText(spec[id], at(id)), optionalText(spec[name], at(name))];
  if (byID !== undefined && byName !== undefined && both === 'wrong')
    throw invalid(`${at(id)}: ${at(name)} is also set, remove one of them`);
  if (byID !== undefined) return { by: 'id', value: byID };
  if (byName !== undefined) return { by: 'name', value: byName };
  throw invalid(`${at(id)}: must be set, or ${at(name)}`);
}

function networksOf(spec: Fields, at: At): Pick<OpenStackSpec, 'networks' | 'subnetIDs'> {
  const networkID = optionalText(spec['networkID'], at('networkID'));
  const hasList = Array.isArray(spec['networks']) && spec['networks'].length > 0;
  if (networkID !== undefined && hasList) throw invalid(`${at('networkID')}: networks is also set, remove one of them`);
  const subnetID = optionalText(spec['subnetID'], at('subnetID'));
  const subnetIDs = [
    ...new Set([...(subnetID === undefined ? [] : [subnetID]), ...list(spec['subnetIDs'], at('subnetIDs'))]),
  ];
  if (networkID !== undefined)
    return { networks: [{ by: 'id', value: networkID, isPodNetwork: true, port: PLAIN_PORT }], subnetIDs };
  if (!hasList) throw invalid(`${at('networkID')}: must be set, or networks`);
  if (subnetIDs.length > 0) throw invalid(`${at('subnetIDs')}: is only valid with networkID, but networks is set`);
  const networks = (spec['networks'] as readonly unknown[]).map((member, i) => {
    const path = `${at('networks')}[${i}]`;
    const network = fields(member, path, ['id', 'name', 'podNetwork', ...PORT_MEMBERS]);
    const isPodNetwork = flag(network['podNetwork'] ?? false, `${path}.podNetwork`);
    const port = portOf(network, (name) => `${path}.${name}`);
    return { ...oneOf(network, 'id', 'name', (name) => `${path}.${name}`, 'wrong'), isPodNetwork, port };
  });
  return { networks, subnetIDs: [] };
}

export const PORT_MEMBERS = ['securityGroups', 'portSecurity', 'vnicType', 'profile', 'fixedIP'];

function portOf(network: Fields, at: At): DesiredPortSettings {
  const groups = network['securityGroups'];
  const portSecurity = network['portSecurity'];
  const securityGroups = groups === undefined ? undefined : list(groups, at('securityGroups'));
  const hasPortSecurity = portSecurity === undefined ? undefined : flag(portSecurity, at('portSecurity'));
  if (hasPortSecurity === false && securityGroups !== undefined && securityGroups.length > 0)
    throw invalid(
      `${at('securityGroups')}: a port without port security has no security groups; remove them or portSecurity`,
    );
  return {
    securityGroups,
    hasPortSecurity,
    vnicType: optionalText(network['vnicType'], at('vnicType')),
    profile: network['profile'] === undefined ? undefined : fields(network['profile'], at('profile')),
    fixedIP: optionalText(network['fixedIP'], at('fixedIP')),
  };
}

function serverGroupOf(spec: Fields, at: At): OpenStackSpec['serverGroup'] {
  const isThere = ['serverGroupID', 'serverGroupName'].some((name) => optionalText(spec[name], at(name)) !== undefined);
  return isThere ? oneOf(spec, 'serverGroupID', 'serverGroupName', at, 'wrong') : undefined;
}

function podNetworkCIDRsOf(spec: Fields, at: At): readonly string[] {
  const one = optionalText(spec['podNetworkCidr'], at('podNetworkCidr'));
  return [...new Set([...(one === undefined ? [] : [one]), ...list(spec['podNetworkCIDRs'], at('podNetworkCIDRs'))])];
}

function diskSizeOf(spec: Fields, at: At): number | undefined {
  const size = wholeGB(spec['rootDiskSize'] ?? 0, at('rootDiskSize'), 0);
  if (spec['bootFromVolume'] === undefined) return size === 0 ? undefined : size;
  const path = at('bootFromVolume');
  const volume = fields(spec['bootFromVolume'], path, ['enabled', 'volumeSize']);
  const isEnabled = flag(volume['enabled'], `${path}.enabled`);
  const volumeSize = wholeGB(volume['volumeSize'], `${path}.volumeSize`, 1);
  const wanted = isEnabled ? volumeSize : 0;
  if (spec['rootDiskSize'] !== undefined && size !== wanted)
    throw invalid(`${path}: differs from rootDiskSize, remove one of them`);
  return isEnabled ? volumeSize : undefined;
}

function dataVolumesOf(spec: Fields, at: At): readonly DesiredDataVolume[] {
  const value = spec['dataVolumes'] ?? [];
  if (!Array.isArray(value)) throw invalid(`${at('dataVolumes')}: must be a list`);
  const volumes = value.map((member: unknown, i) => {
    const path = `${at('dataVolumes')}[${i}]`;
    const volume = fields(member, path, ['name', 'size', 'type']);
    const name = text(volume['name'], `${path}.name`);
    if (!VOLUME_NAME.test(name))
      throw invalid(
        `${path}.name: must consist of at most 50 lowercase letters, digits and '-', and start and end with a letter or digit`,
      );
    const type = optionalText(volume['type'], `${path}.type`);
    return { name, size: wholeGB(volume['size'], `${path}.size`, 1), type };
  });
  const twice = volumes.findIndex(({ name }, i) => volumes.findIndex((other) => other.name === name) < i);
  if (twice !== -1) throw invalid(`${at('dataVolumes')}[${twice}].name: another entry has this name`);
  return volumes;
}

function wholeGB(value: unknown, path: string, least: number): number {
  const size = atLeast(least, value, path, 'GB');
  if (!Number.isInteger(size)) throw invalid(`${path}: must be a whole number of GB`);
  return size;
}

function tagsOf(spec: Fields, at: At): Readonly<Record<string, string>> {
  const tags = spec['tags'] === undefined ? {} : valuesOf(spec['tags'], at('tags'));
  if (marksIn(tags).length < MARKS.length)
    throw invalid(`${at('tags')}: must have a key with ${MARKS.join(' and one with ')}, which identify the servers`);
  return tags;
}

function valuesOf(value: unknown, path: string): Readonly<Record<string, string>> {
  const tags = Object.fromEntries(
    Object.entries(fields(value, path)).map(([key, member]) => [
      key,
      member === '' ? '' : text(member, `${path}.${key}`),
    ]),
  );
  for (const [key, member] of Object.entries(tags)) {
    if (!METADATA_KEY.test(key)) throw invalid(`${path}: ${JSON.stringify(key)} is not a valid key of server metadata`);
    if (key.startsWith('machinist-'))
      throw invalid(`${path}.${key}: the prefix machinist- is reserved, use another key`);
    if (member.length > LONGEST_TAG) throw invalid(`${path}.${key}: must have at most ${LONGEST_TAG} characters`);
  }
  return tags;
}

function floatingIPOf(spec: Fields, at: At): DesiredFloatingIP | undefined {
  if (spec['floatingIP'] === undefined) return undefined;
  const path = at('floatingIP');
  const floatingIP = fields(spec['floatingIP'], path, ['networkID', 'networkName', 'address']);
  const { by, value } = oneOf(floatingIP, 'networkID', 'networkName', (name) => `${path}.${name}`, 'wrong');
  return { by, network: value, address: optionalText(floatingIP['address'], `${path}.address`) };
}
