import { isLabelKey, isLabelValue } from '../../../apis/label-syntax.ts';
import { PROVIDER_API_VERSION, type ClusterMachine } from '../api/machine.ts';
import { DELETION_POLICIES, type DeletionPolicy } from '../../../controllers/machine-facts/deletion-policy.ts';
import { FieldReader, type Problem } from './field-reader.ts';

/** What `spec.providerSpec.value` asks for, as far as we do anything about it. */
export interface ProviderValue {
  /** Of the server: nothing of it can change once there is one. */
  readonly server: DesiredServer;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly maintenance: boolean;
  readonly upgradeIndex: number | undefined;
  /** Undefined: whatever is done without one. */
  readonly deletionPolicy: DeletionPolicy | undefined;
  readonly delete: boolean;
}

export interface DesiredServer {
  readonly availabilityZone: string;
  readonly flavor: string;
  readonly image: string;
  /** IDs or names. */
  readonly securityGroups: readonly string[];
  /** In GB; undefined: the disk of the flavor. */
  readonly rootDiskSize: number | undefined;
}

/** A value, or what is wrong with it. */
export type Read<T> =
  | { readonly value: T; readonly problems?: undefined }
  | { readonly value?: undefined; readonly problems: readonly Problem[] };

const PATH = 'spec.providerSpec.value';
/** The prose of the product's documentation spells the version so. */
const OTHER_SPELLING = PROVIDER_API_VERSION.replace(/1$/, '');
const KIND = 'OpenstackMachineProviderSpec';

/** Reads the value of a Machine; every problem is named at once. */
export function readProviderValue(machine: Pick<ClusterMachine, 'spec'>): Read<ProviderValue> {
  return readValue(machine.spec?.providerSpec?.value, PATH);
}

export function readValue(given: unknown, path: string): Read<ProviderValue> {
  const value = new FieldReader(given ?? {}, path);
  value.oneOf('apiVersion', [PROVIDER_API_VERSION, OTHER_SPELLING]);
  value.oneOf('kind', [KIND]);
  const disk = readDisk(value.raw('bootFromVolume'), path);
  const labels = readLabels(value.list('nodeLabels'), path);
  const read: ProviderValue = {
    server: {
      availabilityZone: value.text('availabilityZone', 'the availability zone of the server'),
      flavor: value.text('flavor', 'the name of a flavor'),
      image: value.text('image', 'the name of an image'),
      securityGroups: readGroups(value),
      rootDiskSize: disk.value,
    },
    nodeLabels: labels.value ?? {},
    maintenance: value.flag('maintenance'),
    upgradeIndex: value.whole('upgradeIndex'),
    deletionPolicy: readPolicy(value),
    delete: value.flag('delete'),
  };
  const problems = [...value.problems, ...(disk.problems ?? []), ...(labels.problems ?? [])];
  return problems.length === 0 ? { value: read } : { problems };
}

/** Whether deletion is asked for, whatever else may be wrong. */
export function isDeletionRequested(machine: Pick<ClusterMachine, 'spec'>): boolean {
  return machine.spec?.providerSpec?.value?.['delete'] === true;
}

function readPolicy(value: FieldReader): DeletionPolicy | undefined {
  const text = value.raw('deletionPolicy') ?? undefined;
  const policy = DELETION_POLICIES.find((one) => one === text);
  if (policy === undefined && text !== undefined)
    value.wrong('deletionPolicy', `must be ${DELETION_POLICIES.join(', ')}`);
  return policy;
}

function readGroups(value: FieldReader): readonly string[] {
  return value.list('securityGroups').flatMap((group, i) => {
    if (typeof group === 'string' && group !== '') return [group];
    value.wrong(`securityGroups[${i}]`, 'must be the ID or the name of a security group');
    return [];
  });
}

function readDisk(
  given: unknown,
  path: string,
): { readonly value: number | undefined; readonly problems?: readonly Problem[] } {
  if (given === undefined || given === null) return { value: undefined };
  const disk = new FieldReader(given, `${path}.bootFromVolume`);
  if (disk.raw('enabled') === undefined) disk.wrong('enabled', 'must be set, to true or false');
  const isEnabled = disk.flag('enabled');
  const size = disk.whole('volumeSize');
  if (disk.raw('volumeSize') === undefined) disk.wrong('volumeSize', 'must be set, in GB');
  return disk.problems.length > 0
    ? { value: undefined, problems: disk.problems }
    : { value: isEnabled ? size : undefined };
}

function readLabels(given: readonly unknown[], path: string): Read<Record<string, string>> {
  const labels = new Map<string, string>();
  const problems = given.flatMap((entry, i) => {
    const label = new FieldReader(entry, `${path}.nodeLabels[${i}]`);
    const [key, text] = [label.raw('key'), label.raw('value') ?? ''];
    if (!isLabelKey(key)) label.wrong('key', 'must be the key of a label');
    else if (labels.has(key) && labels.get(key) !== text) label.wrong('key', `${key} is listed twice, remove one`);
    if (!isLabelValue(text)) label.wrong('value', 'must be the value of a label');
    else if (isLabelKey(key)) labels.set(key, text);
    return label.problems;
  });
  return problems.length > 0 ? { problems } : { value: Object.fromEntries(labels) };
}
