import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../apis/machine/v1alpha1/machine-set.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { Node, VolumeAttachment } from '../apis/wire.ts';
import type { Informer } from '../cache/lister.ts';
import { CLASS_INDEX, classIndex } from '../indexes/class-index.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../indexes/owner-index.ts';
import type { FleetParts } from '../controllers/machines/fleet.ts';
import { MACHINE_INDEXES, NODE_INDEXES, VOLUME_ATTACHMENT_INDEXES } from '../indexes/machine-indexes.ts';
import { SECRET_INDEX, secretIndex } from '../indexes/secret-references.ts';
import {
  machineClasses,
  machineDeployments,
  machines,
  machineSets,
  nodes,
  secrets,
  volumeAttachments,
} from '../kube/resource.ts';
import { trimNode, trimVolumeAttachment } from '../targets/trim.ts';
import type { Base } from './base.ts';
import { Caches } from './caches.ts';

/** Caches of Machines and of what decides over them. */
export interface ControlCaches {
  readonly caches: Caches;
  readonly machines: Informer<Machine>;
  /** In a process that runs only the machine half: not synced while the permissions do not cover it. */
  readonly sets: Informer<MachineSet>;
  readonly deployments: Informer<MachineDeployment>;
  /** Undefined in a process that runs only the manager half. */
  readonly classes: Informer<MachineClass> | undefined;
  /** Metadata only. */
  readonly secrets: Informer<KubeObject> | undefined;
}

/** Caches of one target cluster. */
export interface TargetCaches {
  readonly caches: Caches;
  readonly nodes: Informer<Node>;
  /** Undefined in a process that drains nothing. */
  readonly volumeAttachments: Informer<VolumeAttachment> | undefined;
}

/** Which halves of the product run in this process. */
export interface Halves {
  /** MachineDeployments and MachineSets. */
  readonly sets: boolean;
  /** Machines, MachineClasses and Secrets. */
  readonly machines: boolean;
}

const SET_HALF = ['machine-deployment', 'machine-set', 'safety.overshoot'] as const;
const MACHINE_HALF = ['machine', 'machine-class', 'secret', 'safety.orphan-vms', 'safety.unmanaged-nodes'] as const;

/** The halves that the configured controllers belong to. */
export function halvesOf({ config: { controllers } }: Base): Halves {
  return {
    sets: SET_HALF.some((name) => controllers.has(name)),
    machines: MACHINE_HALF.some((name) => controllers.has(name)),
  };
}

/** Gardener's own roles of the machine half do not cover them. */
const OWNERS =
  'MachineSets and MachineDeployments: annotation max-replacements is not seen, machines are replaced one at a time';

/** The caches of the control cluster that these halves read. */
export function makeControlCaches(base: Base, halves: Halves): ControlCaches {
  const { clock, log, metrics, freezes, held, control } = base;
  const { namespace } = base.config.clusters;
  const caches = new Caches(control, { clock, log, metrics: metrics.kube, freezes, held });
  const forOwners = halves.sets ? {} : { optionalFor: OWNERS };
  return {
    caches,
    machines: caches.add(machines, {
      namespace,
      indexes: { ...MACHINE_INDEXES, [CLASS_INDEX]: classIndex, [CONTROLLER_INDEX]: controllerIndex },
    }),
    sets: caches.add(machineSets, { namespace, indexes: { [CONTROLLER_INDEX]: controllerIndex }, ...forOwners }),
    deployments: caches.add(machineDeployments, { namespace, ...forOwners }),
    classes: halves.machines
      ? caches.add(machineClasses, { namespace, indexes: { [SECRET_INDEX]: secretIndex } })
      : undefined,
    secrets: halves.machines ? caches.add<KubeObject>(secrets, { namespace, metadataOnly: true }) : undefined,
  };
}

/** Machines and their owners, as far as this process may read them: asked anew each time, because caches fill later. */
export function fleetOf(caches: ControlCaches): FleetParts {
  const { sets, deployments } = caches;
  return {
    machines: caches.machines,
    get sets() {
      return sets.hasSynced ? sets : undefined;
    },
    get deployments() {
      return deployments.hasSynced ? deployments : undefined;
    },
  };
}

/** The caches of the target cluster that these halves read; undefined without a target cluster. */
export function makeTargetCaches(base: Base, halves: Halves): TargetCaches | undefined {
  const { clock, log, metrics, freezes, held, target } = base;
  if (target === undefined) return undefined;
  const caches = new Caches(target, { clock, log, metrics: metrics.kube, freezes, held });
  return {
    caches,
    nodes: caches.add(nodes, { indexes: NODE_INDEXES, transform: trimNode }),
    volumeAttachments: halves.machines
      ? caches.add(volumeAttachments, {
          indexes: {
            ...VOLUME_ATTACHMENT_INDEXES,
            persistentVolume: ({ spec }) => [spec.source.persistentVolumeName ?? ''].filter((name) => name !== ''),
          },
          transform: trimVolumeAttachment,
        })
      : undefined,
  };
}
