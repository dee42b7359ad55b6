import { BinaryWriter } from '@bufbuild/protobuf/wire';

import type { Node } from '../../pkg/apis/wire.ts';
import type { Api } from '../control-plane/api.ts';

/** What the protobuf form of Kubernetes objects begins with. */
const MAGIC = Buffer.from('k8s\0');

/**
 * Reads the bytes of a `v1.Node`, by letting the API server do it: it is told to create that Node, as a dry run, and answers what it
 * understood. Nothing else here knows how Kubernetes itself reads protobuf. Throws when the server refuses the Node.
 */
export async function decodeNode(api: Api, bytes: Uint8Array): Promise<Node> {
  const answer = await api.request('/api/v1/nodes?dryRun=All', {
    method: 'POST',
    body: Buffer.concat([MAGIC, envelope(bytes)]),
    contentType: 'application/vnd.kubernetes.protobuf',
  });
  if (answer.status < 300) return answer.body as Node; // by the path
  throw new Error(`the bytes are no Node: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** `runtime.Unknown`: the type, and the object's bytes. */
function envelope(raw: Uint8Array): Uint8Array {
  const type = new BinaryWriter().uint32(10).string('v1').uint32(18).string('Node').finish();
  return new BinaryWriter().uint32(10).bytes(type).uint32(18).bytes(raw).finish();
}
