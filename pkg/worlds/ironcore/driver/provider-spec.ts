import { isIP } from 'node:net';

import { quantityAsNumber } from '../../../apis/quantity.ts';
import { fields, flag, invalid, text, type Fields, memberOf } from '../../../drivers/spec-fields.ts';
import { parseButane, type Butane } from './butane.ts';
import { isTag } from './tags.ts';

/** `providerSpec` of a MachineClass for machines of IronCore, as Gardener's provider has it. */
export interface IronCoreProviderSpec {
  /** Image of the operating system, on the first disk. */
  readonly image: string;
  /** Butane that is joined with what starts the user data; undefined: nothing but that. */
  readonly ignition: Butane | undefined;
  /** Whether members of `ignition` replace those that start the user data, instead of being added to them. */
  readonly ignitionOverride: boolean;
  /** Member of the ignition Secret. */
  readonly ignitionSecretKey: string;
  /** Undefined: a disk of the pool. */
  readonly rootDisk: RootDisk | undefined;
  readonly networkName: string;
  /** From which the address of the machine is taken. */
  readonly prefixName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly dnsServers: readonly string[];
}

/** A volume of its own for the operating system. */
export interface RootDisk {
  readonly size: string;
  readonly volumeClassName: string;
  readonly volumePoolName: string | undefined;
}

const MEMBERS = [
  'image',
  'ignition',
  'ignitionOverride',
  'ignitionSecretKey',
  'rootDisk',
  'networkName',
  'prefixName',
  'labels',
  'dnsServers',
];
const DEFAULT_IGNITION_KEY = 'ignition.yaml';
const SECRET_KEY = /^[-._a-zA-Z0-9]{1,253}$/;
const LABEL_KEY = /^([a-z0-9]([-.a-z0-9]*[a-z0-9])?\/)?[a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$/;
const LABEL_VALUE = /^([a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)?$/;

/** Checks a provider spec. Throws InvalidArgument that names the member; retrying cannot help until the class changes. */
export function parseProviderSpec(value: unknown): IronCoreProviderSpec {
  const spec = fields(value ?? {}, 'providerSpec', MEMBERS);
  const required = (name: string): string => text(spec[name], `providerSpec.${name}`);
  return {
    image: required('image'),
    ignition: ignitionOf(spec),
    ignitionOverride: flag(spec['ignitionOverride'] ?? false, 'providerSpec.ignitionOverride'),
    ignitionSecretKey: ignitionKeyOf(spec),
    rootDisk: rootDiskOf(spec),
    networkName: required('networkName'),
    prefixName: required('prefixName'),
    labels: labelsOf(spec),
    dnsServers: dnsServersOf(spec),
  };
}

/** The labels of a provider spec that may have become wrong: that must not keep machines alive. */
export function labelsIn(value: unknown): Readonly<Record<string, string>> {
  const labels = memberOf(value, 'labels');
  if (typeof labels !== 'object' || labels === null) return {};
  return Object.fromEntries(Object.entries(labels).filter((entry): entry is [string, string] => isText(entry[1])));
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

function ignitionOf(spec: Fields): Butane | undefined {
  return isAbsent(spec['ignition']) ? undefined : parseButane(text(spec['ignition'], 'providerSpec.ignition'));
}

function ignitionKeyOf(spec: Fields): string {
  if (isAbsent(spec['ignitionSecretKey'])) return DEFAULT_IGNITION_KEY;
  const key = text(spec['ignitionSecretKey'], 'providerSpec.ignitionSecretKey');
  if (SECRET_KEY.test(key)) return key;
  throw invalid('providerSpec.ignitionSecretKey: must be a key of a Secret: letters, digits, -, _ and .');
}

function rootDiskOf(spec: Fields): RootDisk | undefined {
  if (isAbsent(spec['rootDisk'])) return undefined;
  const at = (name: string): string => `providerSpec.rootDisk.${name}`;
  const disk = fields(spec['rootDisk'], 'providerSpec.rootDisk', ['size', 'volumeClassName', 'volumePoolName']);
  const size = typeof disk['size'] === 'number' ? String(disk['size']) : text(disk['size'], at('size'));
  if ((quantityAsNumber(size) ?? 0) <= 0)
    throw invalid(`${at('size')}: must be a quantity greater than 0, such as 50Gi`);
  return {
    size,
    volumeClassName: text(disk['volumeClassName'], at('volumeClassName')),
    volumePoolName: isAbsent(disk['volumePoolName']) ? undefined : text(disk['volumePoolName'], at('volumePoolName')),
  };
}

function labelsOf(spec: Fields): Readonly<Record<string, string>> {
  if (isAbsent(spec['labels'])) return {};
  const entries = Object.entries(fields(spec['labels'], 'providerSpec.labels'));
  for (const [key, value] of entries) {
    const path = `providerSpec.labels.${key}`;
    if (!LABEL_KEY.test(key)) throw invalid(`${path}: must be a valid label key`);
    if (isTag(key)) throw invalid(`${path}: is set by the driver, use another key`);
    if (!isText(value) || !LABEL_VALUE.test(value)) throw invalid(`${path}: must be a valid label value`);
  }
  return Object.fromEntries(entries) as Readonly<Record<string, string>>; // checked above
}

function dnsServersOf(spec: Fields): readonly string[] {
  const servers = spec['dnsServers'] ?? [];
  if (!Array.isArray(servers)) throw invalid('providerSpec.dnsServers: must be a list');
  return servers.map((server: unknown, i) => {
    if (isText(server) && isIP(server) !== 0) return server;
    throw invalid(`providerSpec.dnsServers[${i}]: must be an IP address`);
  });
}
