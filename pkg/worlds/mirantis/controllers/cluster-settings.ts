import type { ConfigMap } from '../../../apis/wire.ts';
import { FieldReader } from './field-reader.ts';
import type { Read } from './provider-value.ts';

/** What the Machines of a Cluster have in common, and do not say themselves. */
export interface ClusterSettings {
  readonly region: string;
  /** Undefined: servers have none. */
  readonly keyName: string | undefined;
  /** Exactly one way of naming it. */
  readonly network: { readonly id: string } | { readonly name: string };
  readonly subnetIDs: readonly string[];
  readonly podNetworkCIDRs: readonly string[];
  /** From which servers get a floating IP; undefined: they get none. */
  readonly floatingNetwork: { readonly networkID: string } | { readonly networkName: string } | undefined;
  /** What the region label of Machines has to say, where they have it; undefined: anything. */
  readonly labelledRegion: string | undefined;
}

/** Keys of the ConfigMap, with what they hold. */
export const CLUSTER_SETTINGS = {
  region: 'region of the cloud, as named in its catalog',
  keyName: 'name of the SSH key pair; without it, servers have none',
  networkID: 'ID of the network of the servers; or networkName',
  networkName: 'name of the network of the servers; or networkID',
  subnetIDs: 'subnets in which servers get an address each, separated by commas; with networkID only',
  podNetworkCIDRs: 'address ranges of pods, separated by commas; without them, ports drop packets from and to pods',
  floatingNetworkID:
    'ID of the network from which servers get a floating IP; or floatingNetworkName; without both, no floating IP',
  floatingNetworkName: 'its name; or floatingNetworkID',
  labelledRegion: 'required value of label kaas.mirantis.com/region of Machines that have the label',
} as const;

type Key = keyof typeof CLUSTER_SETTINGS;

/** Keys of which one each has to be there. */
export const NEEDED_SETTINGS: readonly (readonly Key[])[] = [['region'], ['networkID', 'networkName']];

/** Reads the settings; every problem is named at once. */
export function readClusterSettings({ metadata, data = {} }: ConfigMap): Read<ClusterSettings> {
  const path = `ConfigMap ${metadata.name}, data`;
  const settings = new FieldReader(data, path);
  const required = (key: Key): string => settings.text(key, `set: ${CLUSTER_SETTINGS[key]}`);
  const optional = (key: Key): string | undefined => (data[key] ?? '').trim() || undefined;
  const either = (one: Key, other: Key): void => {
    if (optional(one) !== undefined && optional(other) !== undefined)
      settings.wrong(one, `${other} is also set, remove one`);
  };
  either('networkID', 'networkName');
  either('floatingNetworkID', 'floatingNetworkName');
  const unknown = Object.keys(data).filter((key) => !(key in CLUSTER_SETTINGS));
  for (const key of unknown) settings.wrong(key, `unknown, must be one of ${Object.keys(CLUSTER_SETTINGS).join(', ')}`);
  const [networkID, networkName] = [optional('networkID'), optional('networkName')];
  if (networkID === undefined && networkName === undefined) settings.wrong('networkID', 'must be set, or networkName');
  const subnetIDs = listed(data['subnetIDs']);
  if (subnetIDs.length > 0 && networkID === undefined)
    settings.wrong('subnetIDs', 'is only valid with networkID; remove it');
  const [floatingID, floatingName] = [optional('floatingNetworkID'), optional('floatingNetworkName')];
  const value: ClusterSettings = {
    region: required('region'),
    keyName: optional('keyName'),
    network: networkID === undefined ? { name: networkName ?? '' } : { id: networkID },
    subnetIDs,
    podNetworkCIDRs: listed(data['podNetworkCIDRs']),
    floatingNetwork:
      floatingID !== undefined
        ? { networkID: floatingID }
        : floatingName !== undefined
          ? { networkName: floatingName }
          : undefined,
    labelledRegion: optional('labelledRegion'),
  };
  return settings.problems.length === 0 ? { value } : { problems: settings.problems };
}

function listed(text = ''): readonly string[] {
  return text.split(/[\s,]+/).filter((part) => part !== '');
}
