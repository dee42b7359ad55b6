/** A message of a contract in which only these fields are set. */
export function wireMessage<T>(type: { decode(bytes: Uint8Array): T }, fields: Partial<NoInfer<T>> = {}): T {
  return { ...type.decode(new Uint8Array()), ...fields };
}
