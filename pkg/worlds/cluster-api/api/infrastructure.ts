import type { KubeObject } from '../../../apis/meta.ts';
import { reportedCondition, type ClusterAPICondition } from './condition.ts';
import { membersOf, nonEmptyText } from '../../../apis/members.ts';
import type { ContractVersion } from './contract.ts';
import { terminalFailureOf, type TerminalFailure } from './failure.ts';

export interface MachineAddress {
  readonly type: AddressType;
  readonly address: string;
}

const ADDRESS_TYPES = ['Hostname', 'ExternalIP', 'InternalIP', 'ExternalDNS', 'InternalDNS'] as const;
export type AddressType = (typeof ADDRESS_TYPES)[number];

export interface InfrastructureReport {
  readonly provisioned: boolean;
  /** Undefined: to be waited for. */
  readonly providerID: string | undefined;
  readonly addresses: readonly MachineAddress[];
  readonly failureDomain: string | undefined;
  /** The one that it was made for, where the provider chooses it; providers of the older contract report the one that was used there. */
  readonly wantedFailureDomain: string | undefined;
  readonly ready: ClusterAPICondition | undefined;
  readonly failure: TerminalFailure | undefined;
  /** The provider may take the machine back. */
  readonly interruptible: boolean;
}

const MOST_ADDRESSES = 32;
const LONGEST_PROVIDER_ID = 512;
const LONGEST_TEXT = 256;

/** What an infrastructure object says under a contract. Fields that the contract does not allow are as if they were not there. */
export function readInfrastructure(object: KubeObject, contract: ContractVersion): InfrastructureReport {
  const { spec, status } = partsOf(object);
  const provisioned =
    contract === 'v1beta2' ? membersOf(status['initialization'])['provisioned'] === true : status['ready'] === true;
  return {
    provisioned,
    providerID: limited(spec['providerID'], LONGEST_PROVIDER_ID),
    addresses: addressesIn(status['addresses']),
    failureDomain: limited(status['failureDomain'], LONGEST_TEXT),
    wantedFailureDomain: limited(spec['failureDomain'], LONGEST_TEXT),
    ready: reportedCondition(status['conditions'], 'Ready'),
    failure: terminalFailureOf(status),
    interruptible: status['interruptible'] === true,
  };
}

export interface APIEndpoint {
  readonly host: string;
  readonly port: number;
}

export interface ClusterInfrastructureReport {
  readonly provisioned: boolean;
  readonly controlPlaneEndpoint: APIEndpoint | undefined;
  /** As the provider has written them under the newer contract: a list by name. */
  readonly failureDomains: readonly object[] | undefined;
  readonly ready: ClusterAPICondition | undefined;
}

export function readClusterInfrastructure(object: KubeObject, contract: ContractVersion): ClusterInfrastructureReport {
  const { spec, status } = partsOf(object);
  return {
    provisioned:
      contract === 'v1beta2' ? membersOf(status['initialization'])['provisioned'] === true : status['ready'] === true,
    controlPlaneEndpoint: endpointIn(spec['controlPlaneEndpoint']),
    failureDomains: failureDomainsIn(status['failureDomains']),
    ready: reportedCondition(status['conditions'], 'Ready'),
  };
}

/** The endpoint in that member; undefined: there is none, or it makes no sense. */
export function endpointIn(value: unknown): APIEndpoint | undefined {
  const { host, port } = membersOf(value);
  const named = nonEmptyText(host);
  const isPort = typeof port === 'number' && Number.isInteger(port) && port > 0 && port < 65_536;
  return named !== undefined && isPort ? { host: named, port } : undefined;
}

/** A list under the newer contract; under the older one they stand in a map by name. */
function failureDomainsIn(value: unknown): readonly object[] | undefined {
  if (Array.isArray(value)) {
    return (value as readonly unknown[]).map(membersOf).filter(({ name }) => nonEmptyText(name) !== undefined);
  }
  const byName = Object.entries(membersOf(value));
  return byName.length === 0 ? undefined : byName.map(([name, domain]) => ({ name, ...membersOf(domain) }));
}

function addressesIn(value: unknown): readonly MachineAddress[] {
  if (!Array.isArray(value)) return [];
  return (value as readonly unknown[])
    .flatMap((one) => {
      const { type, address } = membersOf(one);
      const known = ADDRESS_TYPES.find((name) => name === type);
      const text = limited(address, LONGEST_TEXT);
      return known === undefined || text === undefined ? [] : [{ type: known, address: text }];
    })
    .slice(0, MOST_ADDRESSES);
}

function limited(value: unknown, longest: number): string | undefined {
  const text = nonEmptyText(value);
  return text !== undefined && text.length <= longest ? text : undefined;
}

export function partsOf(object: KubeObject): Readonly<Record<'spec' | 'status', Readonly<Record<string, unknown>>>> {
  const { spec, status } = membersOf(object);
  return { spec: membersOf(spec), status: membersOf(status) };
}
