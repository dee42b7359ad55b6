import type {
  NetworkInterface,
  Volume,
  VolumeConnection,
} from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import { DOWNWARD_PREFIX, NETWORK_LABELS_ATTRIBUTE, NIC_LABELS_ATTRIBUTE, VOLUME_LABELS_ATTRIBUTE } from './keys.ts';

/**
 * How a volume at a runtime is to the one that is wanted. `size`: nothing else is different, and it can be changed where it is. `disk`: the
 * machine has a disk of the pool in the place of a Volume, and what is on it would be gone without it.
 */
export type Likeness = 'same' | 'size' | 'disk' | 'other';

type Bytes = Readonly<Record<string, Uint8Array>>;

/**
 * Compares what a runtime shows with what is wanted. What it does not show counts as the same: to detach a disk and to attach it again
 * because a runtime keeps its secrets to itself would do that forever.
 */
export function volumeLikeness(has: Volume, wanted: Volume): Likeness {
  if (has.device !== '' && has.device !== wanted.device) return 'other';
  // A disk of the pool is never taken away for its size or its image, of which a runtime may show another name: what is on it would be gone.
  if (wanted.connection === undefined) return has.connection === undefined ? 'same' : 'other';
  if (has.connection === undefined) return has.localDisk === undefined ? 'same' : 'disk';
  const { connection: from } = has;
  const { connection: to } = wanted;
  if (from.driver !== to.driver || from.handle !== to.handle || !sameAccess(from, to)) return 'other';
  const shown = from.effectiveStorageBytes;
  return shown === 0n || shown === to.effectiveStorageBytes ? 'same' : 'size';
}

/** The same of network interfaces, which cannot be changed where they are. */
export function isSameNetworkInterface(has: NetworkInterface, wanted: NetworkInterface): boolean {
  return (
    // A Network whose provider has not named it, or not yet again, is no other one.
    (has.networkId === '' || wanted.networkId === '' || has.networkId === wanted.networkId) &&
    (has.ips.length === 0 || isSameList(has.ips, wanted.ips)) &&
    sameAttributes(has.attributes, wanted.attributes)
  );
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one, at) => one === b[at]);
}

function sameAccess(from: VolumeConnection, to: VolumeConnection): boolean {
  return (
    sameAttributes(from.attributes, to.attributes) &&
    sameBytes(from.secretData, to.secretData) &&
    sameBytes(from.encryptionData, to.encryptionData)
  );
}

const LABELS: ReadonlySet<string> = new Set([VOLUME_LABELS_ATTRIBUTE, NIC_LABELS_ATTRIBUTE, NETWORK_LABELS_ATTRIBUTE]);

type Attributes = Readonly<Record<string, string>>;

/**
 * An earlier machinepoollet sent no labels of the objects, and one that is told to hands on more of them than we do: neither is a reason to
 * detach what it has attached. An object of another name is.
 */
function sameAttributes(shown: Attributes, wanted: Attributes): boolean {
  const [labels, others] = [Object.entries(wanted).filter(([key]) => LABELS.has(key)), { ...wanted }];
  for (const [key] of labels) delete others[key];
  return (
    covers(shown, others, (a, b) => a === b) &&
    labels.every(([key, text]) => covers(labelsIn(shown[key]), identityIn(text), (a, b) => a === b))
  );
}

const UID = '-uid';

/**
 * What tells which object it is: what a flag hands on beside that may change, and is new with what is attached next. So is the UID of one that
 * was lost, as in a restore, and made anew: a machine keeps what is the same but for that.
 */
function identityIn(text: string): Readonly<Record<string, unknown>> {
  const isIdentity = (key: string): boolean => !key.startsWith(DOWNWARD_PREFIX) && !key.endsWith(UID);
  return Object.fromEntries(Object.entries(labelsIn(text)).filter(([key]) => isIdentity(key)));
}

/** Whether another disk is wanted only because the Volume of what is there was lost, and one of the same name was made: nobody has asked for it. */
export function isMadeAnew({ connection: from }: Volume, { connection: to }: Volume): boolean {
  if (from === undefined || to === undefined || (from.driver === to.driver && from.handle === to.handle)) return false;
  const [had, has] = [from, to].map(({ attributes }) => attributes[VOLUME_LABELS_ATTRIBUTE]);
  const [before, now] = [labelsIn(had), Object.entries(labelsIn(has))];
  const own = now.filter(([key]) => !key.startsWith(DOWNWARD_PREFIX));
  return (
    own.some(([key]) => key.endsWith(UID)) &&
    own.every(([key, value]) => before[key] !== undefined && (before[key] === value) !== key.endsWith(UID))
  );
}

/** None of what is no JSON. */
function labelsIn(text = '{}'): Readonly<Record<string, unknown>> {
  try {
    return { ...(JSON.parse(text) as object | null) };
  } catch {
    return {};
  }
}

function sameBytes(shown: Bytes, wanted: Bytes): boolean {
  return covers(shown, wanted, (a, b) => Buffer.compare(a, b) === 0);
}

/** Whether all that is wanted is shown, or nothing is; a runtime may add to it. */
function covers<T>(
  shown: Readonly<Record<string, T>>,
  wanted: Readonly<Record<string, T>>,
  same: (a: T, b: T) => boolean,
): boolean {
  if (Object.keys(shown).length === 0) return true;
  return Object.entries(wanted).every(([key, value]) => {
    const has = shown[key];
    return has !== undefined && same(has, value);
  });
}
