package peers;

import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Counts words on a LocalCluster for a fixed time, and prints what it counted as JSON. */
public final class WordCount {
    /** One counter per task, written by that task alone; all tasks are in this process. */
    private static final Queue<AtomicLong> SENTENCES = new ConcurrentLinkedQueue<>();
    private static final Queue<AtomicLong> WORDS = new ConcurrentLinkedQueue<>();
    private static List<String> lines;

    private static AtomicLong counter(Queue<AtomicLong> all) {
        AtomicLong made = new AtomicLong();
        all.add(made);
        return made;
    }

    private static void add(AtomicLong counter) {
        counter.lazySet(counter.getPlain() + 1);
    }

    private static long sum(Queue<AtomicLong> all) {
        return all.stream().mapToLong(AtomicLong::get).sum();
    }

    /** Gives the sentences, again and again. */
    public static class Sentences extends BaseRichSpout {
        private final boolean acking;
        private transient SpoutOutputCollector collector;
        private transient AtomicLong seen;
        private transient String[] mine;
        private int next;

        Sentences(boolean acking) {
            this.acking = acking;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector out) {
            collector = out;
            seen = counter(SENTENCES);
            mine = lines.toArray(new String[0]);
            next = context.getThisTaskIndex();
        }

        @Override
        public void nextTuple() {
            String sentence = mine[next];
            next = next + 1 == mine.length ? 0 : next + 1;
            add(seen);
            if (acking) {
                collector.emit(new Values(sentence), seen.getPlain());
            } else {
                collector.emit(new Values(sentence));
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("sentence"));
        }
    }

    /** Cuts sentences into words. */
    public static class Split extends BaseRichBolt {
        private transient OutputCollector collector;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector out) {
            collector = out;
        }

        @Override
        public void execute(Tuple tuple) {
            for (String word : tuple.getString(0).split(" ")) {
                collector.emit(tuple, new Values(word));
            }
            collector.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }
    }

    /** Counts words, and gives each with its running count. */
    public static class Count extends BaseRichBolt {
        private transient OutputCollector collector;
        private transient AtomicLong seen;
        private transient Map<String, Long> counts;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector out) {
            collector = out;
            seen = counter(WORDS);
            counts = new HashMap<>();
        }

        @Override
        public void execute(Tuple tuple) {
            String word = tuple.getString(0);
            long count = counts.merge(word, 1L, Long::sum);
            collector.emit(tuple, new Values(word, count));
            collector.ack(tuple);
            add(seen);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word", "count"));
        }
    }

    private static double cpu() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1e9;
    }

    private static double resident() throws Exception {
        String pages = Files.readString(Path.of("/proc/self/statm")).split(" ")[1];
        return Long.parseLong(pages) * 4096 / 1e6;
    }

    /** Arguments: file of sentences, degree, seconds before, seconds measured, acking, batch size. */
    public static void main(String[] args) throws Exception {
        lines = Files.readAllLines(Path.of(args[0]));
        int degree = Integer.parseInt(args[1]);
        boolean acking = Boolean.parseBoolean(args[4]);
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("sentences", new Sentences(acking), degree);
        builder.setBolt("split", new Split(), degree).shuffleGrouping("sentences");
        builder.setBolt("count", new Count(), degree).fieldsGrouping("split", new Fields("word"));
        Config conf = new Config();
        conf.setNumAckers(acking ? degree : 0);
        // Without a bound, open tuples pile up until they time out.
        conf.setMaxSpoutPending(5000);
        conf.put(Config.TOPOLOGY_PRODUCER_BATCH_SIZE, Integer.parseInt(args[5]));
        try (LocalCluster cluster = new LocalCluster()) {
            cluster.submitTopology("wordcount", conf, builder.createTopology());
            while (sum(WORDS) == 0) {
                Thread.sleep(10);
            }
            Thread.sleep((long) (Double.parseDouble(args[2]) * 1000));
            long sentences = sum(SENTENCES);
            long words = sum(WORDS);
            double cpu = cpu();
            long begin = System.nanoTime();
            Thread.sleep((long) (Double.parseDouble(args[3]) * 1000));
            double took = (System.nanoTime() - begin) / 1e9;
            System.out.printf(
                "{\"sentences\": %d, \"words\": %d, \"seconds\": %.3f, \"per_second\": %.1f,"
                    + " \"cpu\": %.3f, \"megabytes\": %.1f, \"threads\": %d}%n",
                sum(SENTENCES) - sentences, sum(WORDS) - words, took, (sum(WORDS) - words) / took,
                (cpu() - cpu) / took, resident(), ManagementFactory.getThreadMXBean().getThreadCount());
            System.out.flush();
        }
        System.exit(0);
    }
}
