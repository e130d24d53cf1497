/** Runs models that `webinfer compile` wrote, in web pages without Python. */

export type Backend = "webgpu" | "wasm";
export type ElementType =
  | "float32" | "float16" | "int8" | "uint8" | "int16" | "uint16" | "int32" | "uint32" | "int64" | "uint64" | "bool";
export type Elements =
  | Float32Array | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array
  | BigInt64Array | BigUint64Array;
export type Picture =
  | ImageData | ImageBitmap | VideoFrame | HTMLImageElement | HTMLVideoElement | HTMLCanvasElement | OffscreenCanvas;

/** An input or output of a model. Where the package leaves a size open, its name stands in the shape, "?" for none. */
export interface TensorInfo {
  name: string;
  dtype: ElementType;
  shape: (number | string)[];
}

/** Elements in row-major order; float16 comes as Float16Array where the browser has it, else as Uint16Array. */
export interface Tensor {
  data: Elements;
  shape: number[];
  dtype: ElementType;
}

/** What an input may be given as: its elements, its bytes, or with its shape, such as a tensor that a run gave. */
export type Given = Elements | ArrayBuffer | number[] | Tensor | { data: Elements | number[]; shape: number[] };

/** `id` is told by `track`: the same for the same thing from frame to frame. */
export interface Followed {
  id?: number;
}

/** A face, in pixels of the picture; keypoints by name are [x, y]. */
export interface Detection extends Followed {
  box: { left: number; top: number; width: number; height: number };
  score: number;
  keypoints: Record<string, [number, number]>;
}

/** What a picture shows: the class's number, its label ("" if none was given) and its score. */
export interface Category {
  index: number;
  label: string;
  score: number;
}

/**
 * A map over all of the picture: how much of each pixel is person or foreground, or its depth, 0..1. It is of the model's own
 * size, but for the mask of a pose, which is of the picture's.
 */
export interface Mask {
  width: number;
  height: number;
  values: Float32Array;
}

/**
 * An object: its class's number and its label ("" if none was given). YOLOs that segment tell a `mask` over all of the
 * picture, those of poses `points` (x, y, score), those of turned boxes `corners`, clockwise, and `rotation` in radians.
 */
export interface DetectedObject extends Category, Followed {
  box: Detection["box"];
  mask?: Mask;
  points?: [number, number, number][];
  corners?: [number, number][];
  rotation?: number;
}

/** A body: its 17 keypoints, and how sure the model is of each. */
export interface BodyPose extends Detection {
  confidences: Record<string, number>;
}

/**
 * Bodies in maps over all of the picture, of the model's own size. `parts` are numbers of `names` plus one, 0 where nobody
 * is; `people` says in the same way to which of `bodies` a pixel belongs.
 */
export interface BodyMask extends Mask {
  parts: Uint8Array;
  people: Uint8Array;
  names: string[];
  bodies: BodyPose[];
}

/** A point, in pixels of the picture (z towards the back) or in metres; `visibility` and `presence` (0..1) of bodies only. */
export interface Landmark {
  x: number;
  y: number;
  z: number;
  visibility?: number;
  presence?: number;
}

/**
 * A face, hand or body. `world`, the points in metres around its centre, which hand it is, its gesture and its mask are told
 * where they are known.
 */
export interface LandmarkedThing extends Followed {
  box: Detection["box"];
  score: number;
  landmarks: Landmark[];
  world?: Landmark[];
  handedness?: "Left" | "Right";
  handednessScore?: number;
  gesture?: string;
  gestureScore?: number;
  mask?: Mask;
}

/** One person: body, and face and hands where they are seen. A hand's side is the person's own. */
export interface Person extends Followed {
  box: Detection["box"];
  score: number;
  pose: LandmarkedThing;
  face: LandmarkedThing | null;
  leftHand: LandmarkedThing | null;
  rightHand: LandmarkedThing | null;
}

/** A line of text. `quad` are its corners from where the text begins: upper left, upper right, lower right, lower left. */
export interface TextLine {
  text: string;
  score: number;
  quad: [number, number][];
  box: Detection["box"];
}

/** What a picture looks like to a model: a vector of length 1. */
export interface ImageEmbedding {
  values: Float32Array;
}

/** What is heard from `start` to `end`, in seconds from the recording's start; no label where speech alone is heard. */
export interface Sound {
  start: number;
  end: number;
  score: number;
  label: string;
}

/** What a file is. `guess` is the model's own label, which is not `label` where its score is too low to be believed. */
export interface FileType {
  label: string;
  score: number;
  guess: string;
  mimeType: string;
  group: string;
  description: string;
}

/** What a text means: a vector of length 1. `pieces` is how many word pieces the model read. */
export interface SentenceEmbedding {
  text: string;
  values: Float32Array;
  pieces: number;
}

/** `samples` are -1..1, of one channel; `rate` a second, a whole number from 1000 to 384000. The model hears them at its own rate. */
export type Recording = AudioBuffer | { samples: Float32Array; rate: number };

/** How far loading is; `total` is 0 where it cannot be known. */
export interface Progress {
  stage: "download" | "shaders";
  done: number;
  total: number;
}

export interface LoadOptions {
  /** Where the model runs; a list is tried in order. "auto": on a GPU of hardware, else on the processor. */
  backend?: "auto" | Backend | Backend[];
  /** Threads on the processor (default 1); more need a cross-origin isolated page. */
  threads?: number;
  /** Runs the model in a worker of its own; the default where threads are asked for. */
  worker?: boolean;
  /** The address of player_worker.js, where the page's bundler does not build it and the page's policy refuses `blob:`. */
  workerUrl?: string;
  onProgress?(progress: Progress): void;
  /** Called when the GPU is lost. The run under way fails; the next one has a new device, or the processor. */
  onLost?(reason: string): void;
}

export interface Model {
  readonly name: string;
  /** The task that was compiled in, such as "face-detection"; "" if there is none. */
  readonly task: string;
  readonly inputs: TensorInfo[];
  readonly outputs: TensorInfo[];
  readonly backend: Backend;
  readonly threads: number;
  /** Why this backend. */
  readonly choice: string;
  /** What a task finds in a picture; `numbers` are the task's, such as { min_score: 0.5 }. */
  run<Found = Detection | Category | Mask | DetectedObject | BodyPose | BodyMask | ImageEmbedding | LandmarkedThing | Person | TextLine>(picture: Picture, numbers?: Record<string, number>): Promise<Found[]>;
  /**
   * The outputs by name. A model with one input takes that alone. `into`: outputs of an earlier run, whose memory is
   * used again: new memory for large results takes longer than to copy them.
   */
  run(inputs: Given | Record<string, Given>, options?: { into?: Record<string, Tensor> }): Promise<Record<string, Tensor>>;
  /** What a task for sound hears in a recording; `numbers` are the task's. */
  run(recording: Recording, numbers?: Record<string, number>): Promise<Sound[]>;
  /** What a task for texts tells of one, or of several. */
  run<Told = SentenceEmbedding | Category>(text: string | string[]): Promise<Told[]>;
  /** What kind of file this is, on a package for that; of bytes give `new Blob([bytes])`. */
  run(file: Blob): Promise<FileType[]>;
  /**
   * What is found in the next frame of a film, which shows this time in milliseconds; now, where none is given. Landmarks are
   * followed without their detector while a thing is there, and are smooth unless `numbers` say { smooth: false }. Where time
   * goes back or the frames' size changes, all begins anew. For tasks of boxes and landmarks.
   */
  track<Found extends Followed = Detection | DetectedObject | BodyPose | LandmarkedThing | Person>(frame: Picture, timeMs?: number, numbers?: Record<string, number | boolean>): Promise<Found[]>;
  /** Forgets the things of the frame before. */
  reset(): Promise<void>;
  close(): void;
}

/** A model that is ready: `source` is the address of a `.webinfer` file, its bytes, a Blob or a Response. */
export function load(source: string | URL | Request | Response | ArrayBuffer | Uint8Array | Blob, options?: LoadOptions): Promise<Model>;

/** What this browser can run packages on; `why` is what keeps it from threads. */
export function capabilities(): Promise<{ webgpu: boolean; wasm: boolean; threads: boolean; why: string }>;

export class PlayerError extends Error {
  constructor(code: PlayerError["code"], message: string, cause?: unknown);
  readonly code:
    | "package" | "integrity" | "unavailable" | "input" | "device-lost" | "gpu" | "kernel" | "memory" | "closed" | "network";
}
