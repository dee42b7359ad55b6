import type { ContractReference } from '../api/contract.ts';
import { CLUSTER_NAME_LABEL } from '../api/keys.ts';
import { isMachineName } from '../../../drivers/machine-identity.ts';
import { fields, invalid, text, optionalText } from '../../../drivers/spec-fields.ts';

/** What a machine starts with: data that is made of a template, a Secret that is there, or the `userData` of the class. */
export type Bootstrap =
  | { readonly from: 'template'; readonly template: ContractReference }
  | { readonly from: 'secret'; readonly name: string }
  | { readonly from: 'userData' };

/** `providerSpec` of a MachineClass whose machines are Machines of Cluster API. */
export interface ClusterAPIProviderSpec {
  /** The Cluster that they belong to, in the namespace of the class. */
  readonly clusterName: string;
  readonly infrastructureRef: ContractReference;
  readonly bootstrap: Bootstrap;
  /** Of Kubernetes; undefined: providers do without. */
  readonly version: string | undefined;
  readonly failureDomain: string | undefined;
  /** On Machines, and on what is made for them. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const API_VERSION = 'cluster-api.machine.sapcloud.io/v1alpha1';
const KIND = 'ClusterAPIProviderSpec';
const MEMBERS = [
  'apiVersion',
  'kind',
  'clusterName',
  'infrastructureRef',
  'bootstrap',
  'version',
  'failureDomain',
  'machineMetadata',
];
const AT = 'providerSpec';
/** Of the keys by which objects are found again. */
const TAG_PREFIX = 'cluster-api.machine.sapcloud.io/';
const GROUP = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)+$/;
const TEMPLATE_KIND = /^[A-Z][A-Za-z0-9]*Template$/;
/** It becomes a label. */
const LONGEST_CLUSTER_NAME = 63;
const LONGEST_FAILURE_DOMAIN = 256;

/** Checks a provider spec. Throws InvalidArgument that names the member; retrying cannot help until the class changes. */
export function parseProviderSpec(value: unknown): ClusterAPIProviderSpec {
  const spec = fields(value ?? {}, AT, MEMBERS);
  const { apiVersion = API_VERSION, kind = KIND } = spec;
  if (apiVersion !== API_VERSION) throw invalid(`${AT}.apiVersion: must be ${API_VERSION}`);
  if (kind !== KIND) throw invalid(`${AT}.kind: must be ${KIND}`);
  const metadata = fields(spec['machineMetadata'] ?? {}, `${AT}.machineMetadata`, ['labels', 'annotations']);
  return {
    clusterName: clusterNameIn(spec['clusterName'], `${AT}.clusterName`),
    infrastructureRef: templateIn(spec['infrastructureRef'], `${AT}.infrastructureRef`),
    bootstrap: bootstrapIn(spec['bootstrap'], `${AT}.bootstrap`),
    version: optionalText(spec['version'], `${AT}.version`),
    failureDomain: failureDomainIn(spec['failureDomain'], `${AT}.failureDomain`),
    labels: keyed(metadata['labels'], `${AT}.machineMetadata.labels`),
    annotations: keyed(metadata['annotations'], `${AT}.machineMetadata.annotations`),
  };
}

/** The templates that a class names, which may have become wrong: that must not hide what was made of them. */
export function templatesIn(value: unknown): {
  readonly infrastructure: ContractReference | undefined;
  readonly bootstrap: ContractReference | undefined;
} {
  const readable = (read: () => ContractReference): ContractReference | undefined => {
    try {
      return read();
    } catch {
      return undefined;
    }
  };
  return {
    infrastructure: readable(() => templateIn(fields(value, AT)['infrastructureRef'], AT)),
    bootstrap: readable(() => templateIn(fields(fields(value, AT)['bootstrap'], AT)['configRef'], AT)),
  };
}

function templateIn(value: unknown, path: string): ContractReference {
  const reference = fields(value, path, ['apiGroup', 'kind', 'name']);
  const apiGroup = text(reference['apiGroup'], `${path}.apiGroup`);
  const kind = text(reference['kind'], `${path}.kind`);
  if (!GROUP.test(apiGroup)) {
    throw invalid(`${path}.apiGroup: must be a group without version, such as infrastructure.cluster.x-k8s.io`);
  }
  if (!TEMPLATE_KIND.test(kind)) {
    throw invalid(`${path}.kind: must be the kind of a template, such as OpenStackMachineTemplate`);
  }
  return { apiGroup, kind, name: nameIn(reference['name'], `${path}.name`) };
}

function bootstrapIn(value: unknown, path: string): Bootstrap {
  if (value === undefined || value === null) return { from: 'userData' };
  const { configRef, dataSecretName } = fields(value, path, ['configRef', 'dataSecretName']);
  if (configRef !== undefined && dataSecretName !== undefined) {
    throw invalid(`${path}.configRef: dataSecretName is set too, remove one of them`);
  }
  if (configRef !== undefined) return { from: 'template', template: templateIn(configRef, `${path}.configRef`) };
  if (dataSecretName !== undefined) return { from: 'secret', name: nameIn(dataSecretName, `${path}.dataSecretName`) };
  return { from: 'userData' };
}

function clusterNameIn(value: unknown, path: string): string {
  const name = nameIn(value, path);
  if (name.length <= LONGEST_CLUSTER_NAME) return name;
  throw invalid(`${path}: must have at most ${LONGEST_CLUSTER_NAME} characters`);
}

function failureDomainIn(value: unknown, path: string): string | undefined {
  const domain = optionalText(value, path);
  if (domain === undefined || domain.length <= LONGEST_FAILURE_DOMAIN) return domain;
  throw invalid(`${path}: must have at most ${LONGEST_FAILURE_DOMAIN} characters`);
}

function nameIn(value: unknown, path: string): string {
  const name = text(value, path);
  if (isMachineName(name)) return name;
  throw invalid(`${path}: must be the name of an object, a DNS subdomain`);
}

/** Labels or annotations; those by which objects are found again are not the user's. */
function keyed(value: unknown, path: string): Readonly<Record<string, string>> {
  const entries = Object.entries(fields(value ?? {}, path)).map(([key, member]) => {
    if (key.startsWith(TAG_PREFIX))
      throw invalid(`${path}.${key}: the prefix ${TAG_PREFIX} is reserved, use another key`);
    if (key === CLUSTER_NAME_LABEL) throw invalid(`${path}.${key}: derived from clusterName, remove it`);
    return [key, member === '' ? '' : text(member, `${path}.${key}`)] as const;
  });
  return Object.fromEntries(entries);
}
