import type { KubeObject } from '../../apis/meta.ts';
import { CLASS_INDEX, classIndex } from '../indexes/class-index.ts';
import { MACHINE_INDEXES } from '../indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../indexes/owner-index.ts';
import { MACHINE_CLASS_INDEXES } from '../indexes/secret-references.ts';
import {
  machineClasses,
  machineDeployments,
  machines,
  machineSets,
  nodeLabelPolicies,
  roleBindings,
  secrets,
} from '../../kube/client/resource.ts';
import { MACHINE_LEASE, MANAGER_LEASE, servesOwnKinds } from '../../kube/leader/names.ts';
import { LOST_WITHOUT_BINDINGS } from '../preflight/roles/machinist.ts';
import { type CachingProcess, cached } from './kind.ts';

/** Gardener's own roles of the machine controllers do not cover them. */
const OWNERS =
  'MachineSets and MachineDeployments: the annotation max-replacements is ignored, and machines are replaced one at a time';

/** Roles of earlier releases do not cover them where no machine controllers run. */
const CLASSES = 'MachineClasses: autoscalers do not know the shape of new Nodes and cannot scale from zero';

/** A kind of ours: definitions and roles of others do not have it. */
const POLICIES = 'NodeLabelPolicies: node templates may set any label';

/** Roles that others wrote do not cover them. */
const BINDINGS = `RoleBindings: ${LOST_WITHOUT_BINDINGS}`;

const runsMachines = ({ leases }: CachingProcess): boolean => leases.has(MACHINE_LEASE);

/** How a process does without MachineSets and MachineDeployments that looks after neither. */
const forOwners = ({ leases }: CachingProcess): { optionalFor?: string } =>
  leases.has(MANAGER_LEASE) ? {} : { optionalFor: OWNERS };

/** The kinds that Machines of ours are made of and by. */
export const OWN_KINDS = {
  machines: cached(machines, ({ leases, namespace }) =>
    servesOwnKinds(leases)
      ? {
          namespace,
          indexes: { ...MACHINE_INDEXES, [CLASS_INDEX]: classIndex, [CONTROLLER_INDEX]: controllerIndex },
        }
      : undefined,
  ),
  /** In a process that runs machine controllers only: not synced while the permissions do not cover it. */
  machineSets: cached(machineSets, (process) =>
    servesOwnKinds(process.leases)
      ? {
          namespace: process.namespace,
          indexes: { [CONTROLLER_INDEX]: controllerIndex },
          ...forOwners(process),
        }
      : undefined,
  ),
  /** The same. */
  machineDeployments: cached(machineDeployments, (process) =>
    servesOwnKinds(process.leases) ? { namespace: process.namespace, ...forOwners(process) } : undefined,
  ),
  classes: cached(machineClasses, (process) => {
    const isNeeded = runsMachines(process) || process.alsoRead.classes !== undefined;
    if (!isNeeded && !process.isAutoscaled) return undefined;
    const { namespace } = process;
    return { namespace, indexes: MACHINE_CLASS_INDEXES, ...(isNeeded ? {} : { optionalFor: CLASSES }) };
  }),
  labelPolicies: cached(nodeLabelPolicies, (process) =>
    runsMachines(process) || process.alsoRead.labelPolicies !== undefined
      ? { namespace: process.namespace, optionalFor: POLICIES }
      : undefined,
  ),
  /** Metadata only. */
  secrets: cached<KubeObject>(secrets, (process) => {
    const { namespace, alsoRead } = process;
    if (runsMachines(process)) return { namespace, metadataOnly: true };
    return alsoRead.secrets && { namespace, metadataOnly: true, ...alsoRead.secrets };
  }),
  /** Metadata only, and only where the Leases outlive the namespace. */
  roleBindings: cached<KubeObject>(roleBindings, (process) =>
    runsMachines(process) && process.namespace !== process.leaseNamespace
      ? { namespace: process.namespace, metadataOnly: true, optionalFor: BINDINGS }
      : undefined,
  ),
};
