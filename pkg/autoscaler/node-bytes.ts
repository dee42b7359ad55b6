import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

import type { Taint } from '../apis/wire.ts';

/** What a Node of a group will look like, before there is one. */
export interface TemplateNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Pick<Taint, 'key' | 'value' | 'effect'>[];
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  readonly os: string;
  readonly architecture: string;
}

/** Ready, and under no pressure. */
const CONDITIONS = [
  { type: 'Ready', status: 'True', reason: 'KubeletReady' },
  { type: 'MemoryPressure', status: 'False', reason: 'KubeletHasSufficientMemory' },
  { type: 'DiskPressure', status: 'False', reason: 'KubeletHasNoDiskPressure' },
  { type: 'PIDPressure', status: 'False', reason: 'KubeletHasSufficientPID' },
  { type: 'NetworkUnavailable', status: 'False', reason: 'RouteCreated' },
] as const;

type Fill = (writer: BinaryWriter) => void;

/** A Node as v1.Node is marshalled by its protobuf: no envelope, keys in order, so that equal Nodes are equal bytes. */
export function nodeBytes(node: TemplateNode): Uint8Array {
  const writer = new BinaryWriter();
  message(writer, 1, (metadata) => {
    text(metadata, 1, node.name);
    textMap(metadata, 11, node.labels);
    textMap(metadata, 12, node.annotations);
  });
  message(writer, 2, (spec) => {
    for (const taint of node.taints) {
      message(spec, 5, (w) => {
        text(w, 1, taint.key);
        text(w, 2, taint.value ?? '');
        text(w, 3, taint.effect);
      });
    }
  });
  message(writer, 3, (status) => {
    quantities(status, 1, node.capacity);
    quantities(status, 2, node.allocatable);
    for (const condition of CONDITIONS) {
      message(status, 4, (w) => {
        text(w, 1, condition.type);
        text(w, 2, condition.status);
        text(w, 5, condition.reason);
      });
    }
    message(status, 7, (info) => {
      text(info, 9, node.os);
      text(info, 10, node.architecture);
    });
  });
  return writer.finish();
}

function message(writer: BinaryWriter, field: number, fill: Fill): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  fill(writer);
  writer.join();
}

function text(writer: BinaryWriter, field: number, value: string): void {
  writer.tag(field, WireType.LengthDelimited).string(value);
}

function entries(values: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(values).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function textMap(writer: BinaryWriter, field: number, values: Readonly<Record<string, string>>): void {
  for (const [key, value] of entries(values)) {
    message(writer, field, (entry) => {
      text(entry, 1, key);
      text(entry, 2, value);
    });
  }
}

/** A map to resource.Quantity, which is a message of one text. */
function quantities(writer: BinaryWriter, field: number, values: Readonly<Record<string, string>>): void {
  for (const [key, value] of entries(values)) {
    message(writer, field, (entry) => {
      text(entry, 1, key);
      message(entry, 2, (quantity) => text(quantity, 1, value));
    });
  }
}
