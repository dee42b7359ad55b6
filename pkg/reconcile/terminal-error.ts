/** Retrying cannot help until the object changes: logged and counted once, never retried by back-off. The cause is inside. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}
